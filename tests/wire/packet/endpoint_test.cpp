// SPDX-License-Identifier: MIT
// Goal: addresses print as people write them. Method: known text.
#include "wire/packet/endpoint.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless::wire;
namespace test = nicless::test;

TEST_CASE("a mapped address is IPv4 and prints with dots", "[packet][endpoint]") {
  const Gid gid = test::ipv4(10, 77, 0, 1);
  CHECK(gid.is_ipv4());
  CHECK(to_string(gid) == "10.77.0.1");
  CHECK(to_string(Endpoint{gid, 4791}) == "10.77.0.1:4791");
}

TEST_CASE("an IPv6 address prints shortened, with brackets before a port", "[packet][endpoint]") {
  const Gid gid = test::gid_of("fd770000000000000000000000000001");
  CHECK_FALSE(gid.is_ipv4());
  CHECK(to_string(gid) == "fd77::1");
  CHECK(to_string(Endpoint{gid, 4791}) == "[fd77::1]:4791");
  CHECK(to_string(Gid{}) == "::");
}
