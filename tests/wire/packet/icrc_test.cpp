// SPDX-License-Identifier: MIT
// Goal: the ICRC equals what Soft-RoCE sent, and the check accepts exactly the packets whose ICRC some IPv4 id
// explains. Method: captured packets with their id, every id for one of our own, and every single-bit error.
#include "wire/packet/icrc.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

const Endpoint kClient{test::ipv4(10, 77, 0, 2), 0xe3ad};
const Endpoint kServer{test::ipv4(10, 77, 0, 1), 4791};
constexpr std::uint16_t kSendIpId = 0x460b;
constexpr const char* kSend = "0400ffff0000001e809c37bb 00005564d3910370 00002157 00000040 b4c54dac";

// A datagram whose payload lies in two pieces.
struct Sample {
  std::vector<std::byte> first = std::vector<std::byte>(700, std::byte{0x11});
  std::vector<std::byte> second = std::vector<std::byte>(325, std::byte{0x22});
  OutDatagram out;

  Sample(const Endpoint& from, const Endpoint& to) {
    out.from = from;
    out.to = to;
    out.spans[0] = first;
    out.spans[1] = second;
    out.span_count = 2;
    Headers headers;
    headers.bth.opcode = opcode_of(Service::Rc, Op::WriteOnly);
    headers.reth = {0x1234, queue::RKey(5), 1025};
    finish_headers(headers, out);
  }
};

}  // namespace

TEST_CASE("seal computes the ICRC that Soft-RoCE sent", "[packet][icrc]") {
  const auto wanted = test::bytes_of(kSend);
  const Decoded decoded = decode(wanted);
  REQUIRE(decoded);
  OutDatagram out;
  out.from = kClient;
  out.to = kServer;
  out.spans[0] = decoded.packet.payload;
  out.span_count = 1;
  finish_headers(decoded.packet.headers, out);
  seal(out, kSendIpId);
  CHECK(test::hex_of(to_bytes(out)) == test::hex_of(wanted));
}

TEST_CASE("the check recovers the IPv4 id it cannot see", "[packet][icrc]") {
  const auto bytes = test::bytes_of(kSend);
  const IcrcCheck check = check_icrc({bytes, kClient, kServer});
  CHECK(check.good);
  CHECK(check.ip_id == kSendIpId);
}

// A peer that counts, as Soft-RoCE does, comes by all of them.
TEST_CASE("any id that seals a packet is recovered", "[packet][icrc]") {
  Sample sample(kClient, kServer);
  std::size_t recovered = 0;
  for (std::uint32_t id = 0; id <= 0xffff; ++id) {
    seal(sample.out, static_cast<std::uint16_t>(id));
    const auto bytes = to_bytes(sample.out);
    const IcrcCheck check = check_icrc({bytes, kClient, kServer});
    if (check.good && check.ip_id == id) ++recovered;
  }
  CHECK(recovered == 0x10000);
}

TEST_CASE("no single-bit error passes", "[packet][icrc]") {
  const bool is_ipv4 = GENERATE(true, false);
  const Gid gid = is_ipv4 ? test::ipv4(127, 0, 0, 1) : test::gid_of("fd770000000000000000000000000001");
  const Endpoint from{gid, 40000}, to{gid, 40001};
  Sample sample(from, to);
  seal(sample.out, 0);
  auto bytes = to_bytes(sample.out);
  REQUIRE(check_icrc({bytes, from, to}).good);
  std::size_t accepted = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    if (bit / 8 == 4) continue;  // resv8a is not covered
    const std::byte mask{static_cast<unsigned char>(1 << (bit % 8))};
    bytes[bit / 8] ^= mask;
    if (check_icrc({bytes, from, to}).good) ++accepted;
    bytes[bit / 8] ^= mask;
  }
  CHECK(accepted == 0);
}

TEST_CASE("congestion marks do not change the ICRC, addresses and ports do", "[packet][icrc]") {
  Sample sample(kClient, kServer);
  seal(sample.out, 0);
  auto bytes = to_bytes(sample.out);
  bytes[4] = std::byte{0xc0};
  CHECK(check_icrc({bytes, kClient, kServer}).good);
  CHECK_FALSE(check_icrc({bytes, Endpoint{kClient.address, 1}, kServer}).good);
  CHECK_FALSE(check_icrc({bytes, kClient, Endpoint{test::ipv4(10, 77, 0, 3), kServer.port}}).good);
}

TEST_CASE("over IPv6 the ICRC is complete", "[packet][icrc]") {
  const Endpoint from{test::gid_of("fd770000000000000000000000000002"), 0xd1d5};
  const Endpoint to{test::gid_of("fd770000000000000000000000000001"), 4791};
  auto bytes = test::bytes_of("6500ffff0000002600000000 0123456700000028 00000028");
  bytes.insert(bytes.end(), 200, std::byte{0});
  const auto icrc = test::bytes_of("48597ab3");
  bytes.insert(bytes.end(), icrc.begin(), icrc.end());
  const IcrcCheck check = check_icrc({bytes, from, to});
  CHECK(check.good);
  CHECK(check.ip_id == 0);
}

TEST_CASE("what is too short to hold an ICRC is not good", "[packet][icrc]") {
  const std::size_t size = GENERATE(as<std::size_t>{}, 0, 1, 3, 4, 12, 15);
  const std::vector<std::byte> bytes(size);
  CHECK_FALSE(check_icrc({bytes, kClient, kServer}).good);
}
