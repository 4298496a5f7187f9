// SPDX-License-Identifier: MIT
// Goal: the options of an id do what rdma_set_option(3) says, at the time they may be set, with values that they take.
// Method: the public interface of the built libraries.
#include <arpa/inet.h>
#include <infiniband/sa.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

TEST_CASE("options are taken with their size only, and what there is none of is ENOSYS", "[option]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  std::uint8_t tos = 0x60;
  int on = 1;
  CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) == 0);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof on), EINVAL);
  CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on) == 0);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, nullptr, sizeof on), EINVAL);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &tos, sizeof tos), EINVAL);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &on, sizeof on), EINVAL);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, 99, &on, sizeof on), ENOSYS);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_IB, 99, &on, sizeof on), ENOSYS);
  CHECK_FAILS(rdma_set_option(id, 99, RDMA_OPTION_ID_TOS, &tos, sizeof tos), ENOSYS);
  std::uint8_t timeout = 32;
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout), EINVAL);
  destroy(id);
}

int only_ipv6(rdma_cm_id* id, int value) {
  return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof value);
}

TEST_CASE("an IPv6 wildcard serves IPv4 unless it is told not to", "[option]") {
  const bool only_v6 = GENERATE(false, true);
  const bool is_late = GENERATE(false, true);  // it is told when it is bound already
  CAPTURE(only_v6, is_late);
  Channel passive;
  Channel active;
  rdma_cm_id* listener = new_id(passive);
  if (!is_late) REQUIRE(only_ipv6(listener, only_v6) == 0);
  auto any = ipv6("::", 0);
  REQUIRE(rdma_bind_addr(listener, as_sockaddr(any)) == 0);
  if (is_late) REQUIRE(only_ipv6(listener, only_v6) == 0);
  if (!is_late && only_v6) CHECK_FAILS(only_ipv6(listener, false), EINVAL);
  REQUIRE(rdma_listen(listener, 0) == 0);
  CHECK_FAILS(only_ipv6(listener, only_v6), EINVAL);
  const std::uint16_t port = ntohs(rdma_get_src_port(listener));
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", port));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  if (only_v6) {
    CHECK(active.next(RDMA_CM_EVENT_REJECTED).status == 8);
  } else {
    const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(rdma_get_peer_addr(request.id)->sa_family == AF_INET);
    destroy(request.id);
  }
  destroy(client);
  destroy(listener);
}

int share(rdma_cm_id* id, int value = 1) {
  return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &value, sizeof value);
}

TEST_CASE("ids share a port if all agree, and one of them listens", "[option]") {
  Channel channel;
  rdma_cm_id* first = new_id(channel);
  rdma_cm_id* second = new_id(channel);
  const bool is_late = GENERATE(false, true);  // the first agrees when it is bound already
  CAPTURE(is_late);
  if (!is_late) REQUIRE(share(first) == 0);
  auto address = ipv4("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(first, as_sockaddr(address)) == 0);
  address = ipv4("127.0.0.1", ntohs(rdma_get_src_port(first)));
  CHECK_FAILS(rdma_bind_addr(second, as_sockaddr(address)), EADDRINUSE);
  REQUIRE(share(second) == 0);
  if (is_late) {
    CHECK_FAILS(rdma_bind_addr(second, as_sockaddr(address)), EADDRINUSE);
    REQUIRE(share(first) == 0);
  }
  REQUIRE(rdma_bind_addr(second, as_sockaddr(address)) == 0);
  CHECK_FAILS(share(second, 0), EINVAL);
  REQUIRE(rdma_listen(first, 0) == 0);
  CHECK_FAILS(rdma_listen(second, 0), EADDRINUSE);
  CHECK_FAILS(share(first), EINVAL);
  destroy(first);
  CHECK(rdma_listen(second, 0) == 0);
  destroy(second);
}

TEST_CASE("an ACK timeout is for reliable connections", "[option]") {
  Channel channel;
  std::uint8_t code = 14;
  rdma_cm_id* datagram = new_id(channel, RDMA_PS_UDP);
  CHECK_FAILS(rdma_set_option(datagram, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &code, sizeof code), EINVAL);
  destroy(datagram);
  rdma_cm_id* connection = new_id(channel);
  CHECK(rdma_set_option(connection, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &code, sizeof code) == 0);
  destroy(connection);
}

rdma_cm_id* with_address(Channel& channel) {
  rdma_cm_id* id = new_id(channel);
  auto to = ipv4("127.0.0.1", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  channel.next(RDMA_CM_EVENT_ADDR_RESOLVED);
  return id;
}

ibv_path_data path_of(const rdma_cm_id* id) {
  ibv_path_data data{};
  data.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  data.path.sgid = id->route.addr.addr.ibaddr.sgid;
  data.path.dgid = id->route.addr.addr.ibaddr.dgid;
  data.path.mtu = 2 << 6 | IBV_MTU_512;
  data.path.packetlifetime = 2 << 6 | 11;
  data.path.tclass = 0x60;
  return data;
}

int set_path(rdma_cm_id* id, std::vector<ibv_path_data> paths) {
  return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths.data(), paths.size() * sizeof(ibv_path_data));
}

TEST_CASE("a path that the program knows takes the place of a route that is looked up", "[option]") {
  Channel channel;
  rdma_cm_id* id = with_address(channel);
  const ibv_path_data path = path_of(id);
  ibv_path_data alternate = path;
  alternate.flags = IBV_PATH_FLAG_ALTERNATE;
  REQUIRE(set_path(id, {alternate, path}) == 0);
  channel.next(RDMA_CM_EVENT_ROUTE_RESOLVED);
  REQUIRE(id->route.num_paths == 1);
  CHECK(id->route.path_rec->mtu == IBV_MTU_512);
  CHECK(id->route.path_rec->packet_life_time == 11);
  CHECK(id->route.path_rec->traffic_class == 0x60);
  CHECK_FAILS(rdma_resolve_route(id, 1000), EINVAL);
  CHECK_FAILS(set_path(id, {path}), EINVAL);
  ibv_qp_init_attr attr = small_qp();
  CHECK(rdma_create_qp(id, nullptr, &attr) == 0);
  destroy(id);
}

TEST_CASE("a path that is none, or none of the id's, is EINVAL", "[option]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  CHECK_FAILS(set_path(id, {ibv_path_data{}}), EINVAL);  // to no address
  destroy(id);
  id = with_address(channel);
  ibv_path_data path = path_of(id);
  CHECK_FAILS(set_path(id, {}), EINVAL);
  path.flags = IBV_PATH_FLAG_PRIMARY;
  CHECK_FAILS(set_path(id, {path}), EINVAL);
  path = path_of(id);
  path.path.dgid.raw[15] ^= 1;
  CHECK_FAILS(set_path(id, {path}), EINVAL);
  path = path_of(id);
  path.path.mtu = 9;
  CHECK_FAILS(set_path(id, {path}), EINVAL);
  path = path_of(id);
  CHECK_FAILS(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof path - 1), EINVAL);
  CHECK_FALSE(channel.has_event());
  CHECK(rdma_resolve_route(id, 1000) == 0);
  destroy(id);
}

}  // namespace
}  // namespace nicless::cm::test
