// SPDX-License-Identifier: MIT
// Goal: rdma_getaddrinfo(3) follows each of its hints, and AF_IB addresses are what they are over RoCE in the kernel: a
// wildcard to listen on, and nothing else. Method: the public interface of the built libraries.
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netdb.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "cm/address.h"
#include "cm/rdma65.h"
#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

struct Info {
  ~Info() { rdma_freeaddrinfo(info); }
  int look_up(const char* node, const char* service, const rdma_addrinfo* hints) {
    return rdma_getaddrinfo(node, service, hints, &info);
  }
  const rdma_addrinfo* operator->() const { return info; }
  rdma_addrinfo* info = nullptr;
};

rdma_addrinfo with(int flags, int family = 0, int qp_type = 0, int port_space = 0) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_family = family;
  hints.ai_qp_type = qp_type;
  hints.ai_port_space = port_space;
  return hints;
}

TEST_CASE("a node alone is a destination of reliable connections, without a route", "[addrinfo]") {
  Info info;
  REQUIRE(info.look_up("127.0.0.1", "7471", nullptr) == 0);
  CHECK(info->ai_flags == 0);
  CHECK(info->ai_family == AF_INET);
  CHECK(info->ai_qp_type == IBV_QPT_RC);
  CHECK(info->ai_port_space == RDMA_PS_TCP);
  CHECK(info->ai_src_len == 0);
  CHECK(info->ai_src_addr == nullptr);
  CHECK(info->ai_dst_len == sizeof(sockaddr_in));
  CHECK(port_of(*info->ai_dst_addr) == 7471);
  CHECK(info->ai_route_len == 0);
  CHECK(info->ai_connect_len == 0);
  CHECK(info->ai_next == nullptr);
}

TEST_CASE("queue pair type and port space say each other's default", "[addrinfo]") {
  struct Row {
    int qp_type, port_space, found_type, found_space;
  };
  const auto row = GENERATE(values<Row>({{IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP},
                                         {0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP},
                                         {0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB},
                                         {0, RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP},
                                         {IBV_QPT_UC, 0, IBV_QPT_UC, RDMA_PS_TCP},
                                         {IBV_QPT_XRC_SEND, RDMA_PS_TCP, IBV_QPT_XRC_SEND, RDMA_PS_TCP},
                                         {IBV_QPT_UD, RDMA_PS_IB, IBV_QPT_UD, RDMA_PS_IB},
                                         {0, RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB}}));
  CAPTURE(row.qp_type, row.port_space);
  const rdma_addrinfo hints = with(0, 0, row.qp_type, row.port_space);
  Info info;
  REQUIRE(info.look_up("::1", "7471", &hints) == 0);
  CHECK(info->ai_family == AF_INET6);
  CHECK(info->ai_qp_type == row.found_type);
  CHECK(info->ai_port_space == row.found_space);
}

TEST_CASE("the passive side gets a source, a wildcard without a node", "[addrinfo]") {
  const bool has_node = GENERATE(false, true);
  const rdma_addrinfo hints = with(RAI_PASSIVE | RAI_NOROUTE, AF_INET, 0, RDMA_PS_TCP);
  Info info;
  REQUIRE(info.look_up(has_node ? "127.0.0.1" : nullptr, "7471", &hints) == 0);
  CHECK(info->ai_flags == RAI_PASSIVE);
  CHECK(info->ai_dst_len == 0);
  CHECK(is_any(*info->ai_src_addr) == !has_node);
  CHECK(port_of(*info->ai_src_addr) == 7471);
}

TEST_CASE("a source of the hints is the result's, and with neither node nor service so is a destination",
          "[addrinfo]") {
  const bool has_node = GENERATE(false, true);
  auto from = ipv4("127.0.0.1", 0);
  auto to = ipv4("127.0.0.1", 9);
  rdma_addrinfo hints = with(0, AF_INET, IBV_QPT_RC, RDMA_PS_TCP);
  hints.ai_src_addr = as_sockaddr(from);
  hints.ai_dst_addr = as_sockaddr(to);
  hints.ai_src_len = hints.ai_dst_len = sizeof(sockaddr_in);
  Info info;
  REQUIRE(info.look_up(has_node ? "127.0.0.1" : nullptr, has_node ? "9" : nullptr, &hints) == 0);
  CHECK(info->ai_family == AF_INET);
  REQUIRE(info->ai_src_len == sizeof(sockaddr_in));
  CHECK(std::memcmp(info->ai_src_addr, &from, sizeof(sockaddr_in)) == 0);
  REQUIRE(info->ai_dst_len == sizeof(sockaddr_in));
  CHECK(std::memcmp(info->ai_dst_addr, &to, sizeof(sockaddr_in)) == 0);
  rdma_cm_id* id = nullptr;
  REQUIRE(rdma_create_ep(&id, info.info, nullptr, nullptr) == 0);
  CHECK(is_loopback(*rdma_get_local_addr(id)));
  rdma_destroy_ep(id);
}

TEST_CASE("what cannot be looked up has the code that the man page has for it", "[addrinfo]") {
  rdma_addrinfo hints{};
  Info info;
  CHECK_FAILS(info.look_up(nullptr, nullptr, nullptr), EINVAL);
  CHECK_FAILS(rdma_getaddrinfo("127.0.0.1", "7471", nullptr, nullptr), EINVAL);
  hints = with(RAI_NUMERICHOST);
  CHECK(info.look_up("localhost", "7471", &hints) == EAI_NONAME);
  hints = with(0, AF_INET);
  CHECK(info.look_up("::1", "7471", &hints) == EAI_ADDRFAMILY);
  hints = with(0, AF_UNIX);
  CHECK(info.look_up("::1", "7471", &hints) == EAI_FAMILY);
  hints = with(0, 0, IBV_QPT_UD, RDMA_PS_TCP);
  CHECK(info.look_up("127.0.0.1", "7471", &hints) == EAI_SOCKTYPE);
  hints = with(0, 0, IBV_QPT_RAW_PACKET);
  CHECK(info.look_up("127.0.0.1", "7471", &hints) == EAI_SOCKTYPE);
  hints = with(0, 0, IBV_QPT_RC);
  CHECK(info.look_up("127.0.0.1", "no such service", &hints) == EAI_SERVICE);
  hints = with(0x100);
  CHECK(info.look_up("127.0.0.1", "7471", &hints) == EAI_BADFLAGS);
  CHECK(info.info == nullptr);
}

TEST_CASE("RAI_DNS is the default, and RAI_SA finds no port to ask", "[addrinfo]") {
  Info info;
  rdma_addrinfo hints = with(kLookUpByDns);
  REQUIRE(info.look_up("127.0.0.1", "7471", &hints) == 0);
  CHECK(info->ai_family == AF_INET);
  Info none;
  hints = with(kLookUpBySa);
  CHECK_FAILS(none.look_up("127.0.0.1", "7471", &hints), EOPNOTSUPP);
  CHECK_FAILS(none.look_up(nullptr, nullptr, &hints), EINVAL);
  CHECK_FAILS(none.look_up(nullptr, "7471", &hints), ENOENT);
  hints = with(kLookUpBySa | kLookUpByDns);
  CHECK_FAILS(none.look_up(nullptr, "7471", &hints), EOPNOTSUPP);
}

TEST_CASE("AF_IB names a GID and a service by what is written as an IP address", "[addrinfo][af_ib]") {
  const rdma_addrinfo hints = with(RAI_NUMERICHOST | RAI_FAMILY, AF_IB, 0, RDMA_PS_TCP);
  Info info;
  REQUIRE(info.look_up("::ffff:10.0.0.1", "7471", &hints) == 0);
  CHECK(info->ai_family == AF_IB);
  CHECK(info->ai_dst_len == sizeof(sockaddr_ib));
  const auto& named = reinterpret_cast<const sockaddr_ib&>(*info->ai_dst_addr);
  CHECK(be64toh(named.sib_sid) == (std::uint64_t{RDMA_PS_TCP} << 16 | 7471));
  CHECK(be64toh(named.sib_sid_mask) == ~std::uint64_t{0});
  CHECK(to_string(*info->ai_dst_addr) == "10.0.0.1:7471");
  CHECK_FALSE(is_any(*info->ai_dst_addr));
}

sockaddr_storage any_gid(std::uint16_t port_space, std::uint16_t port) {
  const sockaddr_ib named = to_ib_address({}, port_space, port);
  sockaddr_storage address{};
  std::memcpy(&address, &named, sizeof named);
  return address;
}

TEST_CASE("a listener at an AF_IB wildcard takes requests, and shows all their private data", "[af_ib]") {
  const auto space = GENERATE(RDMA_PS_TCP, RDMA_PS_IB);  // PS_IB may listen where another port space's requests go
  Channel passive;
  Channel active;
  rdma_cm_id* listener = new_id(passive, space);
  auto any = any_gid(RDMA_PS_TCP, 0);
  REQUIRE(rdma_bind_addr(listener, as_sockaddr(any)) == 0);
  CHECK(rdma_get_local_addr(listener)->sa_family == AF_IB);
  const std::uint16_t port = ntohs(rdma_get_src_port(listener));
  CHECK(port != 0);
  CHECK(port_space_of(*rdma_get_local_addr(listener)) == RDMA_PS_TCP);
  REQUIRE(rdma_listen(listener, 0) == 0);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", port));
  rdma_conn_param param = usual_param();
  param.private_data = "hello";
  param.private_data_len = 5;
  REQUIRE(rdma_connect(client, &param) == 0);
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.private_data.size() == 92);
  CHECK(std::memcmp(request.private_data.data() + 36, "hello", 5) == 0);
  destroy(request.id);
  destroy(client);
  destroy(listener);
}

TEST_CASE("an AF_IB address that names a port is ENODEV: the device's are RoCE's", "[af_ib]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  auto here = ipv4("127.0.0.1", 0);
  const sockaddr_ib named = to_ib_address(to_gid(*as_sockaddr(here)), RDMA_PS_TCP, 0);
  sockaddr_storage address{};
  std::memcpy(&address, &named, sizeof named);
  CHECK_FAILS(rdma_bind_addr(id, as_sockaddr(address)), ENODEV);
  CHECK_FAILS(rdma_resolve_addr(id, nullptr, as_sockaddr(address), 1000), ENODEV);
  CHECK_FALSE(channel.has_event());
  CHECK(rdma_bind_addr(id, as_sockaddr(here)) == 0);
  destroy(id);
}

}  // namespace
}  // namespace nicless::cm::test
