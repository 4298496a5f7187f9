// SPDX-License-Identifier: MIT
// Goal: datagram services are found, answered and refused as the man pages and the Linux kernel have it, with what the
// events promise in them. Method: the public interface of the built libraries, both ends in this process, over
// loopback.
#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kRequestBytes = 180;  // of private data
constexpr std::size_t kReplyBytes = 136;

Bytes numbered(std::size_t bytes) {
  Bytes data(bytes);
  std::iota(data.begin(), data.end(), std::uint8_t{1});
  return data;
}

rdma_conn_param with_data(const Bytes& data) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<std::uint8_t>(data.size());
  return param;
}

// A service and an id that is about to ask for it.
struct Service {
  explicit Service(sockaddr_storage address = ipv4("127.0.0.1", 0), rdma_port_space space = RDMA_PS_UDP)
      : listener(passive_channel, address, 0, space) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(listener.port());  // the same place for IPv6
    client = resolved(active_channel, address, true, space);
  }
  ~Service() {
    destroy(client);
    destroy(server);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void ask(const Bytes& data = {}) {
    rdma_conn_param param = with_data(data);
    REQUIRE(rdma_connect(client, &param) == 0);
    request = passive_channel.next(RDMA_CM_EVENT_CONNECT_REQUEST);
    server = request.id;
  }
  void accept(const Bytes& data = {}) {
    ibv_qp_init_attr attr = small_qp(IBV_QPT_UD);
    REQUIRE(rdma_create_qp(server, nullptr, &attr) == 0);
    rdma_conn_param param = with_data(data);
    REQUIRE(rdma_accept(server, &param) == 0);
  }

  Channel passive_channel;
  Channel active_channel;
  Listener listener;
  rdma_cm_id* client = nullptr;
  rdma_cm_id* server = nullptr;
  Seen request;
};

void post_receive(rdma_cm_id* id, Bytes& into, ibv_mr* mr) {
  REQUIRE(rdma_post_recv(id, nullptr, into.data(), into.size(), mr) == 0);
}

TEST_CASE("a service is found, and datagrams go both ways by what the event says", "[datagram]") {
  const bool is_v6 = GENERATE(false, true);
  const rdma_port_space space = GENERATE(RDMA_PS_UDP, RDMA_PS_IPOIB);
  CAPTURE(is_v6, space);
  Service s(is_v6 ? ipv6("::1", 0) : ipv4("127.0.0.1", 0), space);
  s.ask();
  s.accept();
  const Seen found = s.active_channel.next(RDMA_CM_EVENT_ESTABLISHED);
  CHECK(found.status == 0);
  CHECK(found.ud.qp_num == s.server->qp->qp_num);
  CHECK(found.ud.qkey == RDMA_UDP_QKEY);
  CHECK(found.ud.ah_attr.is_global == 1);
  CHECK(found.ud.ah_attr.port_num == 1);
  CHECK(found.ud.ah_attr.grh.hop_limit == 64);
  CHECK_FALSE(s.passive_channel.has_event());  // nothing is established at the answering end

  Bytes message = numbered(100);
  Bytes at_server(140);
  Bytes at_client(140);
  ibv_mr* out = rdma_reg_msgs(s.client, message.data(), message.size());
  ibv_mr* in = rdma_reg_msgs(s.server, at_server.data(), at_server.size());
  ibv_mr* back = rdma_reg_msgs(s.client, at_client.data(), at_client.size());
  post_receive(s.server, at_server, in);
  post_receive(s.client, at_client, back);
  ibv_ah* there = ibv_create_ah(s.client->pd, const_cast<ibv_ah_attr*>(&found.ud.ah_attr));
  REQUIRE(there != nullptr);
  REQUIRE(rdma_post_ud_send(s.client, nullptr, message.data(), message.size(), out, 0, there, found.ud.qp_num) == 0);
  ibv_wc wc{};
  REQUIRE(rdma_get_recv_comp(s.server, &wc) == 1);
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.src_qp == s.client->qp->qp_num);
  CHECK(std::memcmp(at_server.data() + 40, message.data(), message.size()) == 0);

  ibv_ah* here = ibv_create_ah_from_wc(s.server->pd, &wc, reinterpret_cast<ibv_grh*>(at_server.data()), 1);
  REQUIRE(here != nullptr);
  REQUIRE(rdma_post_ud_send(s.server, nullptr, at_server.data() + 40, 100, in, 0, here, wc.src_qp) == 0);
  REQUIRE(rdma_get_recv_comp(s.client, &wc) == 1);
  CHECK(std::memcmp(at_client.data() + 40, message.data(), message.size()) == 0);
  for (ibv_ah* ah : {there, here}) ibv_destroy_ah(ah);
  for (ibv_mr* mr : {out, in, back}) rdma_dereg_mr(mr);
}

TEST_CASE("private data of a service's messages arrives whole", "[datagram]") {
  Service s;
  s.ask(numbered(kRequestBytes));
  CHECK(s.request.private_data == numbered(kRequestBytes));
  CHECK(s.request.listen_id == s.listener.get());
  CHECK(s.request.ud.qp_num == 0);
  CHECK(s.request.ud.qkey == 0);
  CHECK(s.server->qp_type == IBV_QPT_UD);
  CHECK(ntohs(rdma_get_src_port(s.server)) == s.listener.port());
  CHECK(rdma_get_dst_port(s.server) == rdma_get_src_port(s.client));
  s.accept(numbered(kReplyBytes));
  CHECK(s.active_channel.next(RDMA_CM_EVENT_ESTABLISHED).private_data == numbered(kReplyBytes));
}

TEST_CASE("a program may name a queue pair that is not the id's", "[datagram]") {
  Service s;
  s.ask();
  rdma_conn_param param{};
  param.qp_num = 0x123456;
  REQUIRE(rdma_accept(s.server, &param) == 0);
  CHECK(s.active_channel.next(RDMA_CM_EVENT_ESTABLISHED).ud.qp_num == 0x123456);
}

TEST_CASE("a service that is refused is unreachable with status 2", "[datagram]") {
  const bool is_destroyed = GENERATE(false, true);
  Service s;
  s.ask();
  const Bytes words = is_destroyed ? Bytes{} : numbered(kReplyBytes);
  if (is_destroyed) {
    CHECK(rdma_destroy_id(std::exchange(s.server, nullptr)) == 0);
  } else {
    REQUIRE(rdma_reject(s.server, words.data(), static_cast<std::uint8_t>(words.size())) == 0);
  }
  const Seen refused = s.active_channel.next(RDMA_CM_EVENT_UNREACHABLE);
  CHECK(refused.status == 2);
  CHECK(refused.private_data == (is_destroyed ? Bytes(kReplyBytes) : words));
}

TEST_CASE("a service that nobody offers is unreachable with status 1", "[datagram]") {
  Channel channel;
  const bool has_other_space = GENERATE(false, true);  // else the port is closed
  CAPTURE(has_other_space);
  Listener other(channel, ipv4("127.0.0.1", 0));
  const std::uint16_t port = has_other_space ? other.port() : std::uint16_t{1};
  rdma_cm_id* client = resolved(channel, ipv4("127.0.0.1", port), true, RDMA_PS_UDP);
  rdma_conn_param param{};
  REQUIRE(rdma_connect(client, &param) == 0);
  CHECK(channel.next(RDMA_CM_EVENT_UNREACHABLE).status == 1);
  destroy(client);
}

TEST_CASE("a synchronous id waits for its service, and hears that it is refused", "[datagram]") {
  Channel channel;
  Listener listener(channel, ipv4("127.0.0.1", 0), 0, RDMA_PS_UDP);
  const std::uint16_t port = GENERATE(std::uint16_t{0}, std::uint16_t{1});
  sockaddr_storage to = ipv4("127.0.0.1", port == 0 ? listener.port() : port);
  rdma_cm_id* client = nullptr;
  REQUIRE(rdma_create_id(nullptr, &client, nullptr, RDMA_PS_UDP) == 0);
  REQUIRE(rdma_resolve_addr(client, nullptr, as_sockaddr(to), 1000) == 0);
  REQUIRE(rdma_resolve_route(client, 1000) == 0);
  if (port != 0) {
    CHECK(rdma_connect(client, nullptr) == -1);
    CHECK(errno == ECONNREFUSED);
    CHECK(client->event->event == RDMA_CM_EVENT_UNREACHABLE);
  } else {
    rdma_cm_id* server = nullptr;
    std::thread answering([&] {
      server = channel.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
      rdma_conn_param param{};
      param.qp_num = 77;
      rdma_accept(server, &param);
    });
    CHECK(rdma_connect(client, nullptr) == 0);
    answering.join();
    CHECK(client->event->event == RDMA_CM_EVENT_ESTABLISHED);
    CHECK(client->event->param.ud.qp_num == 77);
    destroy(server);
  }
  destroy(client);
}

TEST_CASE("what has no place in the order of calls, or no room in the message, is EINVAL", "[datagram]") {
  Service s;
  rdma_conn_param too_long = with_data(numbered(kRequestBytes + 1));
  CHECK_FAILS(rdma_connect(s.client, &too_long), EINVAL);
  s.ask();
  CHECK_FAILS(rdma_connect(s.client, nullptr), EINVAL);
  too_long = with_data(numbered(kReplyBytes + 1));
  CHECK_FAILS(rdma_accept(s.server, &too_long), EINVAL);
  CHECK_FAILS(rdma_reject(s.server, too_long.private_data, too_long.private_data_len), EINVAL);
  s.accept();
  rdma_conn_param param{};
  CHECK_FAILS(rdma_accept(s.server, &param), EINVAL);
  CHECK_FAILS(rdma_reject(s.server, nullptr, 0), EINVAL);
  CHECK_FAILS(rdma_establish(s.server), EINVAL);
  CHECK_FAILS(rdma_notify(s.server, IBV_EVENT_COMM_EST), EINVAL);
  s.active_channel.next(RDMA_CM_EVENT_ESTABLISHED);
}

TEST_CASE("a listener that closes takes nothing from those that it served", "[datagram]") {
  Channel passive;
  Channel active;
  auto listener = std::make_unique<Listener>(passive, ipv4("127.0.0.1", 0), 0, RDMA_PS_UDP);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener->port()), true, RDMA_PS_UDP);
  REQUIRE(rdma_connect(client, nullptr) == 0);
  rdma_cm_id* server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  listener.reset();
  rdma_conn_param param{};
  param.qp_num = 5;
  REQUIRE(rdma_accept(server, &param) == 0);
  CHECK(active.next(RDMA_CM_EVENT_ESTABLISHED).ud.qp_num == 5);
  destroy(server);
  destroy(client);
}

TEST_CASE("an id that is destroyed while it asks hears nothing more", "[datagram]") {
  Service s;
  rdma_conn_param param{};
  REQUIRE(rdma_connect(s.client, &param) == 0);
  destroy(std::exchange(s.client, nullptr));
  s.server = s.passive_channel.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  CHECK(rdma_accept(s.server, &param) == 0);
  CHECK_FALSE(s.active_channel.has_event());
}

TEST_CASE("to disconnect a datagram id stops its queue pair and says nothing", "[datagram]") {
  Service s;
  s.ask();
  s.accept();
  s.active_channel.next(RDMA_CM_EVENT_ESTABLISHED);
  for (rdma_cm_id* id : {s.client, s.server}) {
    CHECK(rdma_disconnect(id) == 0);
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    REQUIRE(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) == 0);
    CHECK(attr.qp_state == IBV_QPS_ERR);
  }
  CHECK_FALSE(s.active_channel.has_event());
  CHECK_FALSE(s.passive_channel.has_event());
}

TEST_CASE("requests beyond the backlog are forgotten and asked again", "[datagram]") {
  Channel passive;
  Channel active;
  Listener listener(passive, ipv4("127.0.0.1", 0), 1, RDMA_PS_UDP);
  rdma_cm_id* clients[2];
  for (rdma_cm_id*& client : clients) {
    client = resolved(active, ipv4("127.0.0.1", listener.port()), false, RDMA_PS_UDP);
    rdma_conn_param param{};
    REQUIRE(rdma_connect(client, &param) == 0);
  }
  for (int i = 0; i < 2; ++i) {
    rdma_cm_id* server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    rdma_conn_param param{};
    param.qp_num = 9;
    REQUIRE(rdma_accept(server, &param) == 0);
    active.next(RDMA_CM_EVENT_ESTABLISHED);
    destroy(server);
  }
  for (rdma_cm_id* client : clients) destroy(client);
}

}  // namespace
}  // namespace nicless::cm::test
