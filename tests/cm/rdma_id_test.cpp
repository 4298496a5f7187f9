// SPDX-License-Identifier: MIT
// Goal: ids, event channels, addresses and options behave as the man pages say, wrong use included. Method: the public
// interface of the built libraries.
#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

TEST_CASE("a new id shows what it was made with and nothing else", "[id]") {
  Channel channel;
  int context = 0;
  rdma_cm_id* id = new_id(channel, RDMA_PS_TCP, &context);
  CHECK(id->context == &context);
  CHECK(id->channel == channel.get());
  CHECK(id->ps == RDMA_PS_TCP);
  CHECK(id->qp_type == IBV_QPT_RC);
  CHECK(id->verbs == nullptr);
  CHECK(id->qp == nullptr);
  CHECK(id->pd == nullptr);
  CHECK(rdma_get_src_port(id) == 0);
  destroy(id);
  rdma_cm_id* datagram = new_id(channel, RDMA_PS_UDP);
  CHECK(datagram->qp_type == IBV_QPT_UD);
  destroy(datagram);
}

TEST_CASE("binding to an address binds to its device, to a wildcard it does not", "[id]") {
  Channel channel;
  rdma_cm_id* specific = new_id(channel);
  auto address = ipv4("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(specific, as_sockaddr(address)) == 0);
  CHECK(specific->verbs != nullptr);
  CHECK(specific->pd != nullptr);
  CHECK(specific->port_num == 1);
  CHECK(rdma_get_src_port(specific) != 0);
  rdma_cm_id* wildcard = new_id(channel);
  auto any = ipv4("0.0.0.0", 0);
  REQUIRE(rdma_bind_addr(wildcard, as_sockaddr(any)) == 0);
  CHECK(wildcard->verbs == nullptr);
  CHECK(rdma_get_src_port(wildcard) != 0);
  CHECK(rdma_get_src_port(wildcard) != rdma_get_src_port(specific));
  CHECK_FAILS(rdma_bind_addr(wildcard, as_sockaddr(any)), EINVAL);
  destroy(specific);
  destroy(wildcard);
}

TEST_CASE("a port is taken once in a port space, and both port spaces may have it", "[id]") {
  Channel channel;
  rdma_cm_id* stream = new_id(channel);
  auto any = ipv4("0.0.0.0", 0);
  REQUIRE(rdma_bind_addr(stream, as_sockaddr(any)) == 0);
  auto same = ipv4("0.0.0.0", ntohs(rdma_get_src_port(stream)));
  rdma_cm_id* datagram = new_id(channel, RDMA_PS_UDP);
  CHECK(rdma_bind_addr(datagram, as_sockaddr(same)) == 0);
  rdma_cm_id* other = new_id(channel);
  CHECK_FAILS(rdma_bind_addr(other, as_sockaddr(same)), EADDRINUSE);
  destroy(stream);
  CHECK(rdma_bind_addr(other, as_sockaddr(same)) == 0);
  destroy(datagram);
  destroy(other);
}

TEST_CASE("addresses that cannot be used say why", "[id]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  auto foreign = ipv4("198.51.100.7", 0);
  CHECK_FAILS(rdma_bind_addr(id, as_sockaddr(foreign)), EADDRNOTAVAIL);
  sockaddr_storage unknown{};
  unknown.ss_family = AF_UNIX;
  CHECK_FAILS(rdma_bind_addr(id, as_sockaddr(unknown)), EINVAL);
  CHECK_FAILS(rdma_bind_addr(id, nullptr), EINVAL);
  CHECK_FAILS(rdma_resolve_addr(id, nullptr, nullptr, 1000), EINVAL);
  auto here = ipv4("127.0.0.1", 1);
  CHECK_FAILS(rdma_resolve_addr(id, as_sockaddr(foreign), as_sockaddr(here), 1000), EADDRNOTAVAIL);
  auto here6 = ipv6("::1", 1);
  CHECK_FAILS(rdma_resolve_addr(id, as_sockaddr(here6), as_sockaddr(here), 1000), EINVAL);
  CHECK_FALSE(channel.has_event());
  destroy(id);
}

TEST_CASE("calls out of order are EINVAL", "[id]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_conn_param param = usual_param();
  ibv_qp_init_attr attr = small_qp();
  CHECK_FAILS(rdma_connect(id, &param), EINVAL);
  CHECK_FAILS(rdma_accept(id, &param), EINVAL);
  CHECK_FAILS(rdma_reject(id, nullptr, 0), EINVAL);
  CHECK_FAILS(rdma_disconnect(id), EINVAL);
  CHECK_FAILS(rdma_resolve_route(id, 1000), EINVAL);
  CHECK_FAILS(rdma_create_qp(id, nullptr, &attr), EINVAL);
  CHECK_FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  CHECK_FAILS(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000), EINVAL);
  CHECK_FAILS(rdma_connect(id, &param), EINVAL);
  CHECK_FAILS(rdma_listen(id, 1), EINVAL);
  destroy(id);
  CHECK_FAILS(rdma_destroy_id(nullptr), EINVAL);
  CHECK_FAILS(rdma_ack_cm_event(nullptr), EINVAL);
  CHECK_FAILS(rdma_create_id(channel.get(), &id, nullptr, static_cast<rdma_port_space>(7)), EINVAL);
}

TEST_CASE("a descriptor without events says so, and poll knows when there is one", "[channel]") {
  Channel channel;
  REQUIRE(fcntl(channel.get()->fd, F_SETFL, O_NONBLOCK) == 0);
  rdma_cm_event* event = nullptr;
  CHECK_FAILS(rdma_get_cm_event(channel.get(), &event), EAGAIN);
  CHECK_FALSE(channel.has_event());
  rdma_cm_id* id = new_id(channel);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  CHECK(channel.has_event());
  channel.next(RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK_FALSE(channel.has_event());
  CHECK((fcntl(channel.get()->fd, F_GETFD) & FD_CLOEXEC) != 0);
  destroy(id);
}

TEST_CASE("destroying an id waits for the events the program holds, and forgets the others", "[channel]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  rdma_cm_event* held = channel.fetch();
  REQUIRE(rdma_resolve_route(id, 1000) == 0);
  std::atomic<bool> acknowledged{false};
  bool came_first = false;
  std::thread destroyer([&] {
    rdma_destroy_id(id);
    came_first = acknowledged.load();
  });
  acknowledged = true;
  REQUIRE(rdma_ack_cm_event(held) == 0);
  destroyer.join();
  CHECK(came_first);
  CHECK_FALSE(channel.has_event());
}

TEST_CASE("migrating an id takes its events along", "[channel]") {
  Channel first;
  Channel second;
  rdma_cm_id* id = new_id(first);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  REQUIRE(rdma_migrate_id(id, second.get()) == 0);
  CHECK(id->channel == second.get());
  CHECK_FALSE(first.has_event());
  CHECK(second.next(RDMA_CM_EVENT_ADDR_RESOLVED).id == id);
  REQUIRE(rdma_migrate_id(id, nullptr) == 0);
  CHECK(rdma_resolve_route(id, 1000) == 0);
  CHECK(id->event->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
  CHECK_FAILS(rdma_migrate_id(id, nullptr), EINVAL);
  destroy(id);
}

TEST_CASE("migrating an id waits for what the program holds of it on the old channel", "[channel]") {
  Channel first;
  Channel second;
  rdma_cm_id* id = new_id(first);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  rdma_cm_event* held = first.fetch();
  std::atomic<bool> acknowledged{false};
  bool came_first = false;
  std::thread migrator([&] {
    rdma_migrate_id(id, second.get());
    came_first = acknowledged.load();
  });
  acknowledged = true;
  REQUIRE(rdma_ack_cm_event(held) == 0);
  migrator.join();
  CHECK(came_first);
  REQUIRE(rdma_resolve_route(id, 1000) == 0);
  CHECK(second.next(RDMA_CM_EVENT_ROUTE_RESOLVED).id == id);
  destroy(id);
}

TEST_CASE("requests that wait for a listener migrate with it, and so do their ids", "[channel]") {
  Channel active;
  Channel second;
  rdma_cm_id* id = nullptr;
  {
    Channel first;
    const bool through_sync = GENERATE(false, true);
    rdma_cm_id* listener = new_id(first);
    auto any = ipv4("127.0.0.1", 0);
    REQUIRE(rdma_bind_addr(listener, as_sockaddr(any)) == 0);
    REQUIRE(rdma_listen(listener, 0) == 0);
    rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", ntohs(rdma_get_src_port(listener))));
    rdma_conn_param param = usual_param();
    REQUIRE(rdma_connect(client, &param) == 0);
    REQUIRE(first.has_event(10000));
    if (through_sync) REQUIRE(rdma_migrate_id(listener, nullptr) == 0);
    REQUIRE(rdma_migrate_id(listener, second.get()) == 0);
    CHECK_FALSE(first.has_event());
    id = second.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    CHECK(id->channel == second.get());
    ibv_qp_init_attr attr = small_qp();
    REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
    REQUIRE(rdma_accept(id, &param) == 0);
    active.next(RDMA_CM_EVENT_ESTABLISHED);
    CHECK(second.next(RDMA_CM_EVENT_ESTABLISHED).id == id);
    destroy(client);
    destroy(listener);
  }
  CHECK(second.next(RDMA_CM_EVENT_DISCONNECTED).id == id);
  destroy(id);
}

TEST_CASE("a synchronous id waits in its calls and shows the event", "[sync]") {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  REQUIRE(rdma_getaddrinfo("127.0.0.1", "0", &hints, &info) == 0);
  ibv_qp_init_attr attr = small_qp();
  rdma_cm_id* listener = nullptr;
  REQUIRE(rdma_create_ep(&listener, info, nullptr, &attr) == 0);
  rdma_freeaddrinfo(info);
  REQUIRE(rdma_listen(listener, 0) == 0);

  hints.ai_flags = 0;
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listener)));
  REQUIRE(rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &info) == 0);
  rdma_cm_id* client = nullptr;
  REQUIRE(rdma_create_ep(&client, info, nullptr, &attr) == 0);
  rdma_freeaddrinfo(info);
  CHECK(client->qp != nullptr);
  CHECK(client->send_cq != nullptr);
  CHECK(client->recv_cq_channel != nullptr);

  int connected = -1;
  std::thread connector([&] { connected = rdma_connect(client, nullptr); });
  rdma_cm_id* server = nullptr;
  REQUIRE(rdma_get_request(listener, &server) == 0);
  CHECK(server->qp != nullptr);
  CHECK(server->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(server->event->listen_id == listener);
  CHECK(rdma_accept(server, nullptr) == 0);
  connector.join();
  CHECK(connected == 0);
  CHECK(client->event->event == RDMA_CM_EVENT_ESTABLISHED);
  CHECK(rdma_disconnect(client) == 0);
  CHECK(rdma_disconnect(server) == 0);
  rdma_destroy_ep(client);
  rdma_destroy_ep(server);
  rdma_destroy_ep(listener);
}

TEST_CASE("a synchronous refusal is ECONNREFUSED", "[sync]") {
  rdma_addrinfo hints{};
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  REQUIRE(rdma_getaddrinfo("127.0.0.1", "1", &hints, &info) == 0);
  ibv_qp_init_attr attr = small_qp();
  rdma_cm_id* client = nullptr;
  REQUIRE(rdma_create_ep(&client, info, nullptr, &attr) == 0);
  rdma_freeaddrinfo(info);
  CHECK_FAILS(rdma_connect(client, nullptr), ECONNREFUSED);
  rdma_destroy_ep(client);
}

TEST_CASE("a queue pair gets completion queues of its own where it has none", "[qp]") {
  Channel channel;
  rdma_cm_id* id = resolved(channel, ipv4("127.0.0.1", 1), false);
  ibv_qp_init_attr attr = small_qp();
  SECTION("none given") {
    REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
    CHECK(attr.send_cq == id->send_cq);
    CHECK(attr.recv_cq == id->recv_cq);
    CHECK(id->send_cq->cq_context == id);
    CHECK(id->send_cq->channel == id->send_cq_channel);
    CHECK(id->qp->pd == id->pd);
    rdma_destroy_qp(id);
    CHECK(id->send_cq == nullptr);
    CHECK(id->recv_cq_channel == nullptr);
  }
  SECTION("given") {
    ibv_cq* cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
    REQUIRE(cq != nullptr);
    attr.send_cq = attr.recv_cq = cq;
    ibv_pd* pd = ibv_alloc_pd(id->verbs);
    REQUIRE(rdma_create_qp(id, pd, &attr) == 0);
    CHECK(id->send_cq == nullptr);
    CHECK(id->pd == pd);
    CHECK_FAILS(rdma_create_qp(id, pd, &attr), EINVAL);
    rdma_destroy_qp(id);
    CHECK(ibv_destroy_cq(cq) == 0);
    CHECK(ibv_dealloc_pd(pd) == 0);
  }
  SECTION("with a shared receive queue of the id") {
    ibv_srq_init_attr srq{};
    srq.attr.max_wr = 8;
    srq.attr.max_sge = 1;
    REQUIRE(rdma_create_srq(id, nullptr, &srq) == 0);
    REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
    CHECK(id->qp->srq == id->srq);
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    CHECK(id->srq == nullptr);
  }
  destroy(id);
}

TEST_CASE("an extended queue pair needs what is the id's device's, and an SRQ its type", "[qp]") {
  Channel channel;
  rdma_cm_id* id = resolved(channel, ipv4("127.0.0.1", 1), false);
  ibv_context* other = ibv_open_device(id->verbs->device);
  ibv_pd* foreign = ibv_alloc_pd(other);
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.cap = small_qp().cap;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = foreign;
  CHECK_FAILS(rdma_create_qp_ex(id, &attr), EINVAL);
  CHECK_FAILS(rdma_create_qp_ex(id, nullptr), EINVAL);
  attr.comp_mask = 0;
  REQUIRE(rdma_create_qp_ex(id, &attr) == 0);
  CHECK(id->qp->pd == id->pd);
  CHECK_FAILS(rdma_create_qp_ex(id, &attr), EINVAL);
  rdma_destroy_qp(id);
  ibv_srq_init_attr_ex srq{};
  srq.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  CHECK_FAILS(rdma_create_srq_ex(id, &srq), EINVAL);
  srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
  srq.srq_type = IBV_SRQT_BASIC;
  REQUIRE(rdma_create_srq_ex(id, &srq) == 0);
  CHECK(id->srq->pd == id->pd);
  CHECK_FAILS(rdma_create_srq_ex(id, &srq), EINVAL);
  rdma_destroy_srq(id);
  srq.srq_type = IBV_SRQT_XRC;
  REQUIRE(rdma_create_srq_ex(id, &srq) == 0);
  CHECK(id->recv_cq != nullptr);
  CHECK(id->recv_cq_channel != nullptr);
  rdma_destroy_srq(id);
  CHECK(id->recv_cq == nullptr);
  destroy(id);
  CHECK(ibv_dealloc_pd(foreign) == 0);
  CHECK(ibv_close_device(other) == 0);
}

TEST_CASE("devices are listed, and an id's is one of them", "[devices]") {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  REQUIRE(list != nullptr);
  REQUIRE(count >= 1);
  CHECK(list[count] == nullptr);
  Channel channel;
  rdma_cm_id* id = resolved(channel, ipv4("127.0.0.1", 1), false);
  CHECK(std::find(list, list + count, id->verbs) != list + count);
  rdma_free_devices(list);
  destroy(id);
  list = rdma_get_devices(nullptr);
  REQUIRE(list != nullptr);
  rdma_free_devices(list);
  rdma_free_devices(nullptr);
}

TEST_CASE("every event has its name", "[names]") {
  std::set<std::string> names;
  for (int number = 0; number < 20; ++number) {  // the last one of rdma-core 65 is 19
    const std::string name = rdma_event_str(static_cast<rdma_cm_event_type>(number));
    CHECK(name.rfind("RDMA_CM_EVENT_", 0) == 0);
    CHECK(names.insert(name).second);
  }
  CHECK(std::string(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED)) == "RDMA_CM_EVENT_ADDR_RESOLVED");
  CHECK(std::string(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT)) == "RDMA_CM_EVENT_TIMEWAIT_EXIT");
  for (const int unknown : {-1, 20, 99})
    CHECK(std::string(rdma_event_str(static_cast<rdma_cm_event_type>(unknown))) == "UNKNOWN EVENT");
}

}  // namespace
}  // namespace nicless::cm::test
