// SPDX-License-Identifier: MIT
// Goal: the 40 bytes before a received datagram are what RoCE v2 puts there: the IPv6 header, or 20 zeros and the IPv4
// header. IBTA A17.4.3.
// Method: whole headers compared byte for byte, for datagrams of known ends.
#include "wire/ud/grh.h"

#include <arpa/inet.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

using namespace nicless::wire;

namespace {

Gid gid(const char* text) {
  Gid gid;
  REQUIRE(inet_pton(AF_INET6, text, gid.bytes.data()) == 1);
  return gid;
}

std::vector<unsigned> grh_of(const char* from, const char* to, IpOptions ip, std::size_t udp_payload_bytes) {
  const std::vector<std::byte> bytes(udp_payload_bytes);
  const auto grh = make_grh({bytes, {gid(from), 1}, {gid(to), 2}, ip});
  std::vector<unsigned> numbers(grh.size());
  std::transform(grh.begin(), grh.end(), numbers.begin(), [](std::byte b) { return std::to_integer<unsigned>(b); });
  return numbers;
}

}  // namespace

TEST_CASE("over IPv4: 20 zeros and the IPv4 header, its checksum right", "[grh]") {
  // clang-format off
  CHECK(grh_of("::ffff:192.168.0.1", "::ffff:192.168.0.199", {0, 64}, 87) == std::vector<unsigned>{
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61,
      192, 168, 0, 1, 192, 168, 0, 199});  // the example of every text about this checksum
  // clang-format on
  const auto marked = grh_of("::ffff:10.0.0.1", "::ffff:239.1.2.3", {0x60, 7}, 28);
  CHECK(marked[20 + 1] == 0x60);
  CHECK(marked[20 + 8] == 7);
  CHECK(marked[20 + 16] == 239);
}

TEST_CASE("over IPv6: the IPv6 header", "[grh]") {
  // clang-format off
  CHECK(grh_of("2001:db8::1", "ff0e::2", {0xa5, 9}, 28) == std::vector<unsigned>{
      0x6a, 0x50, 0x00, 0x00, 0, 36, 17, 9,
      0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
      0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  // clang-format on
}
