// SPDX-License-Identifier: MIT
// Goal: a trace is a pcapng file that shows each datagram as RoCE v2 on port 4791, with checksums and ICRC that fit,
// and keeps the truth in its comment. Method: the bytes of each block, written out; sums over the headers; golden
// packets sent between ports of ours. (tshark_test.py asks tshark.)
#include "wire/packet/pcapng.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/bytes.h"
#include "tests/support/golden.h"
#include "wire/packet/icrc.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr std::size_t kBlockHeadBytes = 28;  // type, length, interface, two halves of the time, two lengths

const Endpoint kFrom{test::ipv4(10, 0, 0, 1), 40001};
const Endpoint kTo{test::ipv4(10, 0, 0, 2), 40002};

std::vector<std::byte> ack_sealed_for(const Endpoint& from, const Endpoint& to, std::uint16_t ip_id) {
  OutDatagram out;
  out.from = from;
  out.to = to;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, Op::Acknowledge);
  headers.bth.dest_qp = queue::Qpn(0x9c4201);
  headers.aeth = Aeth::ack(1);
  finish_headers(headers, out);
  seal(out, ip_id);
  return to_bytes(out);
}

std::vector<std::byte> block_of(const Endpoint& from, const Endpoint& to, std::span<const std::byte> bytes) {
  std::vector<std::byte> block;
  append_pcapng({.unix_time_ns = 0x1122334455667788, .from = from, .to = to, .bytes = bytes}, block);
  return block;
}

// RFC 1071 over whole bytes: 0xffff when the checksum in them is right.
unsigned folded_sum(std::span<const std::byte> bytes, unsigned sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += std::to_integer<unsigned>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

}  // namespace

TEST_CASE("a trace begins with a section and one interface of raw IP in nanoseconds", "[packet][pcapng]") {
  std::vector<std::byte> out;
  append_pcapng_start(out);
  const std::string name = "0700 6e69636c65737300";  // "nicless", padded
  CHECK(test::hex_of(out) ==
        test::hex_of(test::bytes_of("0a0d0d0a 38000000 4d3c2b1a 0100 0000 ffffffffffffffff"  // section header
                                    "0200" +
                                    name + "0400" + name +
                                    "00000000 38000000"
                                    "01000000 2c000000 6500 0000 00000000"  // interface description
                                    "0200 0800 6e69636c65737330 0900 0100 09000000 00000000 2c000000")));
}

TEST_CASE("a datagram becomes one block with its time, direction and true ports", "[packet][pcapng]") {
  const auto bytes = ack_sealed_for(kFrom, kTo, 0);
  std::vector<std::byte> block;
  append_pcapng({0x1122334455667788, true, kFrom, kTo, {0x20, 63}, bytes}, block);
  const std::string text = test::hex_of(block);
  CHECK(text.substr(0, 2 * kBlockHeadBytes) ==
        test::hex_of(test::bytes_of("06000000 70000000 00000000 44332211 88776655 30000000 30000000")));
  CHECK(text.substr(2 * kBlockHeadBytes, 16) == "4520003000004000");
  CHECK(text.substr(2 * (kBlockHeadBytes + 20), 8) == "9c4112b7");  // 40001 to 4791
  CHECK(text.substr(text.size() - 2 * 36) ==
        test::hex_of(test::bytes_of("0100 0f00 7564702034303030313e343030303200"  // comment "udp 40001>40002"
                                    "0200 0400 02000000"                          // outbound
                                    "00000000 70000000")));
}

TEST_CASE("a received datagram is marked inbound", "[packet][pcapng]") {
  const auto bytes = ack_sealed_for(kFrom, kTo, 0);
  const std::string text = test::hex_of(block_of(kFrom, kTo, bytes));
  CHECK(text.substr(text.size() - 2 * 16) == "02000400010000000000000070000000");
}

TEST_CASE("shown IPv4 headers and UDP have valid checksums, and the ICRC fits what is shown", "[packet][pcapng]") {
  const std::uint16_t ip_id = GENERATE(as<std::uint16_t>{}, 0, 5, 0x460b);
  const auto bytes = ack_sealed_for(kFrom, kTo, ip_id);
  const auto block = block_of(kFrom, kTo, bytes);
  const auto packet = std::span<const std::byte>(block).subspan(kBlockHeadBytes, 20 + 8 + bytes.size());
  CHECK(folded_sum(packet.first(20)) == 0xffff);
  CHECK(folded_sum(packet.subspan(12), 17 + 8 + static_cast<unsigned>(bytes.size())) == 0xffff);  // with addresses
  const IcrcCheck check = check_icrc({packet.subspan(28), kFrom, {kTo.address, 4791}});
  CHECK(check.good);
  CHECK(check.ip_id == ip_id);
  CHECK(test::hex_of(packet.subspan(4, 2)) == test::hex_of(std::array{std::byte(ip_id >> 8), std::byte(ip_id & 255)}));
}

TEST_CASE("the same over IPv6", "[packet][pcapng]") {
  const Endpoint from{test::gid_of("fd770000000000000000000000000002"), 40001};
  const Endpoint to{test::gid_of("fd770000000000000000000000000001"), 40002};
  const auto bytes = ack_sealed_for(from, to, 0);
  const auto block = block_of(from, to, bytes);
  const auto packet = std::span<const std::byte>(block).subspan(kBlockHeadBytes, 40 + 8 + bytes.size());
  CHECK(test::hex_of(packet.first(8)) == "60000000001c1140");
  CHECK(folded_sum(packet.subspan(8), 17 + 8 + static_cast<unsigned>(bytes.size())) == 0xffff);
  CHECK(check_icrc({packet.subspan(48), from, {to.address, 4791}}).good);
}

TEST_CASE("a bad ICRC is shown as it came, and stays bad", "[packet][pcapng]") {
  auto bytes = ack_sealed_for(kFrom, kTo, 0);
  bytes[9] ^= std::byte{1};
  const auto block = block_of(kFrom, kTo, bytes);
  const auto shown = std::span<const std::byte>(block).subspan(kBlockHeadBytes + 28, bytes.size());
  CHECK(test::hex_of(shown) == test::hex_of(bytes));
  CHECK_FALSE(check_icrc({shown, kFrom, {kTo.address, 4791}}).good);
}

TEST_CASE("what is no packet at all is shown too, in whole words", "[packet][pcapng]") {
  const std::vector<std::byte> bytes(GENERATE(as<std::size_t>{}, 0, 1, 2, 3, 15), std::byte{0x7b});
  const auto block = block_of(kFrom, kTo, bytes);
  CHECK(block.size() % 4 == 0);
  const auto shown = std::span<const std::byte>(block).subspan(kBlockHeadBytes + 28, bytes.size());
  CHECK(test::hex_of(shown) == test::hex_of(bytes));
}

TEST_CASE("a source port that another protocol may own is shown higher", "[packet][pcapng]") {
  const Endpoint from{kFrom.address, 53};
  const auto bytes = ack_sealed_for(from, kTo, 0);
  const auto block = block_of(from, kTo, bytes);
  const auto packet = std::span<const std::byte>(block).subspan(kBlockHeadBytes, 28 + bytes.size());
  CHECK(test::hex_of(packet.subspan(20, 4)) == "c03512b7");
  CHECK(check_icrc({packet.subspan(28), {from.address, 0xc035}, {kTo.address, 4791}}).good);
}

TEST_CASE("packets that went to port 4791 anyway are shown unchanged", "[packet][pcapng][golden]") {
  for (const test::GoldenPacket& golden : test::golden_packets("rxt-ops-ipv6")) {
    INFO(golden.where);
    const auto block = block_of(golden.from, golden.to, golden.bytes);
    const auto shown = std::span<const std::byte>(block).subspan(kBlockHeadBytes + 48, golden.bytes.size());
    REQUIRE(test::hex_of(shown) == test::hex_of(golden.bytes));
  }
}
