// SPDX-License-Identifier: MIT
// Goal: what the operating system says of ways and hosts is understood. Method: the loopback interface, which is the
// same everywhere; tests/cm/hosts_test.py has links on which somebody or nobody answers.
#include "cm/route.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "cm/address.h"
#include "cm/neighbour.h"

namespace nicless::cm {
namespace {

// 192.0.2.1, RFC 5737: nobody has it.
sockaddr_storage documentation_address() {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{192};
  gid.bytes[14] = std::byte{2};
  gid.bytes[15] = std::byte{1};
  return to_address(gid, 0);
}

TEST_CASE("the way to this machine begins at the same address", "[route]") {
  const auto family = GENERATE(as<sa_family_t>{}, AF_INET, AF_INET6);
  const sockaddr_storage here = loopback(family, 7471);
  const auto route = look_up_route(as_sockaddr(here), nullptr);
  REQUIRE(route.has_value());
  CHECK(to_gid(as_sockaddr(route->source)) == to_gid(as_sockaddr(here)));
  CHECK(port_of(as_sockaddr(route->source)) == 0);
  CHECK(route->mtu_bytes >= 1500);
}

TEST_CASE("no way begins at an address of another family, or of another machine", "[route]") {
  const sockaddr_storage here = loopback(AF_INET, 7471);
  const sockaddr_storage other_family = loopback(AF_INET6, 0);
  CHECK(look_up_route(as_sockaddr(here), &as_sockaddr(other_family)).error().errno_value == EINVAL);
  const sockaddr_storage elsewhere = documentation_address();
  CHECK(look_up_route(as_sockaddr(here), &as_sockaddr(elsewhere)).error().errno_value == EADDRNOTAVAIL);
}

TEST_CASE("a payload has to leave room for the longest headers", "[route]") {
  CHECK(path_mtu_for(65536) == IBV_MTU_4096);
  CHECK(path_mtu_for(4192) == IBV_MTU_4096);
  CHECK(path_mtu_for(4191) == IBV_MTU_2048);
  CHECK(path_mtu_for(1500) == IBV_MTU_1024);
  CHECK(path_mtu_for(600) == IBV_MTU_256);
  CHECK(path_mtu_for(0) == IBV_MTU_256);
}

TEST_CASE("this machine is found at once, whether anybody has the port or not", "[route]") {
  const auto family = GENERATE(as<sa_family_t>{}, AF_INET, AF_INET6);
  const sockaddr_storage here = loopback(family, 0);
  ProbeSocket probe(family);
  REQUIRE(probe.connect(as_sockaddr(here)));
  REQUIRE(probe.solicit(family));
  CHECK(probe.look() == HostSearch::Sight::Found);
  CHECK(probe.look() == HostSearch::Sight::Found);
}

TEST_CASE("where no way leads nobody is known", "[route]") {
  const sockaddr_storage here = loopback(AF_INET, 0);
  const sockaddr_storage elsewhere = documentation_address();  // not to be had from a loopback address
  CHECK_FALSE(is_known_neighbour(as_sockaddr(here), as_sockaddr(elsewhere)));
}

}  // namespace
}  // namespace nicless::cm
