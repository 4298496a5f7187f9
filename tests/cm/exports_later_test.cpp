// SPDX-License-Identifier: MIT
// Goal: what librdmacm has learnt in its later versions behaves as the man pages say: events of the program's own,
// asynchronous look-ups, vendors' options. Method: the public interface of the built libraries.
#include "cm/rdma65.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

TEST_CASE("an event of the program's own wakes who waits, with status and argument", "[user_event]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_cm_event* event = nullptr;
  std::thread waiting([&] { REQUIRE(rdma_get_cm_event(channel.get(), &event) == 0); });
  REQUIRE(rdma_write_cm_event(id, kUserEvent, -7, 0x123456789abcdef0) == 0);
  waiting.join();
  CHECK(event->event == kUserEvent);
  CHECK(event->id == id);
  CHECK(event->status == -7);
  std::uint64_t argument = 0;
  std::memcpy(&argument, &event->param, sizeof argument);
  CHECK(argument == 0x123456789abcdef0);
  CHECK(rdma_ack_cm_event(event) == 0);
  CHECK_FAILS(rdma_write_cm_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), EINVAL);
  CHECK_FAILS(rdma_write_cm_event(nullptr, kUserEvent, 0, 0), EINVAL);
  destroy(id);
}

TEST_CASE("an address is looked up and fetched once", "[resolve_addrinfo]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_addrinfo* info = nullptr;
  CHECK_FAILS(rdma_query_addrinfo(id, &info), ENOENT);
  REQUIRE(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", nullptr) == 0);
  CHECK_FAILS(rdma_resolve_addrinfo(id, "127.0.0.2", "7471", nullptr), EBUSY);
  CHECK(channel.next(kAddrinfoResolved).status == 0);
  REQUIRE(rdma_query_addrinfo(id, &info) == 0);
  CHECK(reinterpret_cast<sockaddr_in*>(info->ai_dst_addr)->sin_port == htons(7471));
  rdma_freeaddrinfo(info);
  CHECK_FAILS(rdma_query_addrinfo(id, &info), ENOENT);
  REQUIRE(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", nullptr) == 0);
  channel.next(kAddrinfoResolved);
  destroy(id);  // frees what nobody fetched
}

TEST_CASE("a name that does not exist is an event, and another may follow", "[resolve_addrinfo]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST | kLookUpByDns;
  REQUIRE(rdma_resolve_addrinfo(id, "no number", "7471", &hints) == 0);
  CHECK(channel.next(kAddrinfoError).status == EAI_NONAME);
  rdma_addrinfo* info = nullptr;
  CHECK_FAILS(rdma_query_addrinfo(id, &info), ENOENT);
  CHECK(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints) == 0);
  channel.next(kAddrinfoResolved);
  destroy(id);
}

TEST_CASE("there is no subnet administrator to ask", "[resolve_addrinfo]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  rdma_addrinfo hints{};
  hints.ai_flags = kLookUpBySa;
  CHECK_FAILS(rdma_resolve_addrinfo(id, nullptr, "7471", &hints), EOPNOTSUPP);
  CHECK_FAILS(rdma_resolve_addrinfo(id, nullptr, nullptr, nullptr), EINVAL);
  CHECK_FAILS(rdma_query_addrinfo(id, nullptr), EINVAL);
  CHECK_FALSE(channel.has_event());
  destroy(id);
}

TEST_CASE("vendors' options travel with request and reply", "[ece]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
  ibv_ece ours{.vendor_id = 0x15b3, .options = 0x30000007, .comp_mask = 0};
  REQUIRE(rdma_set_local_ece(client, &ours) == 0);
  rdma_conn_param param = usual_param();
  param.qp_num = 5;
  REQUIRE(rdma_connect(client, &param) == 0);

  rdma_cm_id* server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ibv_ece theirs{};
  REQUIRE(rdma_get_remote_ece(server, &theirs) == 0);
  CHECK(theirs.vendor_id == 0x15b3);
  CHECK(theirs.options == 0x30000007);
  theirs.options = 0x30000001;
  REQUIRE(rdma_set_local_ece(server, &theirs) == 0);
  param.qp_num = 6;
  REQUIRE(rdma_accept(server, &param) == 0);
  active.next(RDMA_CM_EVENT_CONNECT_RESPONSE);
  REQUIRE(rdma_get_remote_ece(client, &theirs) == 0);
  CHECK(theirs.vendor_id == 0x15b3);
  CHECK(theirs.options == 0x30000001);
  destroy(client);
  destroy(server);
}

TEST_CASE("who cannot serve the vendor's options refuses with reason 35", "[ece]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  rdma_cm_id* server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  REQUIRE(rdma_reject_ece(server, "no", 2) == 0);
  const Seen refused = active.next(RDMA_CM_EVENT_REJECTED);
  CHECK(refused.status == 35);
  CHECK(refused.private_data[1] == 'o');
  destroy(client);
  destroy(server);
}

TEST_CASE("options are for programs with queue pairs of their own, and have a vendor", "[ece]") {
  Channel channel;
  rdma_cm_id* id = resolved(channel, ipv4("127.0.0.1", 1), false);
  ibv_ece ece{};
  CHECK_FAILS(rdma_set_local_ece(id, &ece), EINVAL);
  ece = {.vendor_id = 1, .options = 0, .comp_mask = 1};
  CHECK_FAILS(rdma_set_local_ece(id, &ece), EINVAL);
  CHECK_FAILS(rdma_set_local_ece(id, nullptr), EINVAL);
  CHECK_FAILS(rdma_get_remote_ece(id, nullptr), EINVAL);
  ibv_qp_init_attr attr = small_qp();
  REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
  ece.comp_mask = 0;
  CHECK_FAILS(rdma_set_local_ece(id, &ece), EINVAL);
  CHECK_FAILS(rdma_get_remote_ece(id, &ece), EINVAL);
  destroy(id);
}

}  // namespace
}  // namespace nicless::cm::test
