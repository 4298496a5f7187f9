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

TEST_CASE("zeros of an IPv6 address are shortened as RFC 5952 says", "[packet][endpoint]") {
  const auto text = [](const char* hex) { return to_string(test::gid_of(hex)); };
  CHECK(text("00000000000000000000000000000001") == "::1");
  CHECK(text("fe800000000000000000000000000000") == "fe80::");
  CHECK(text("fe80000000000000505400fffe000001") == "fe80::5054:ff:fe00:1");
  CHECK(text("20010db8000000010001000100010001") == "2001:db8:0:1:1:1:1:1");  // one zero group stays
  CHECK(text("20010000000000010000000000000001") == "2001:0:0:1::1");         // the longer run
  CHECK(text("20010db8000000000001000000000001") == "2001:db8::1:0:0:1");     // the first of two equal
  CHECK(text("00010002000300040005000600070008") == "1:2:3:4:5:6:7:8");
}
