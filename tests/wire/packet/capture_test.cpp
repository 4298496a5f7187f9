// SPDX-License-Identifier: MIT
// Goal: captures are read back, ours and other programs', and what is broken ends the walk without a read past the end.
// Method: traces that pcapng.cpp wrote, small files written out by hand in either byte order, and every cut of one.
#include "wire/packet/capture.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/support/bytes.h"
#include "tests/support/golden.h"
#include "wire/packet/pcapng.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

// IPv4, UDP from port 0x0102 to 4791, "abcd".
const std::string kIpv4Packet =
    "45000020 00070000 40110000 0a000001 0a000002"
    "010212b7 000c0000"
    "61626364";

std::vector<CapturedFrame> frames_of(std::span<const std::byte> file) {
  std::optional<CaptureReader> reader = CaptureReader::open(file);
  REQUIRE(reader);
  std::vector<CapturedFrame> frames;
  while (const auto frame = reader->next()) frames.push_back(*frame);
  CHECK_FALSE(reader->is_cut_short());
  return frames;
}

CapturedFrame raw_frame(std::span<const std::byte> bytes) {
  CapturedFrame frame;
  frame.link_type = 101;
  frame.bytes = bytes;
  return frame;
}

}  // namespace

TEST_CASE("a trace of ours comes back with time, direction, bytes and true ports", "[packet][capture]") {
  const auto golden = test::golden_packets("rping-C2");
  const bool is_outbound = GENERATE(false, true);
  std::vector<std::byte> file;
  append_pcapng_start(file);
  for (const test::GoldenPacket& packet : golden) {
    append_pcapng({1'700'000'000'123'456'789, is_outbound, packet.from, packet.to, {}, packet.bytes}, file);
  }
  const auto frames = frames_of(file);
  REQUIRE(frames.size() == golden.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(frames[i].unix_time_ns == 1'700'000'000'123'456'789);
    CHECK(frames[i].direction == (is_outbound ? CaptureDirection::Out : CaptureDirection::In));
    const auto shown = find_datagram(frames[i]);
    REQUIRE(shown);
    const CapturedDatagram datagram = with_true_ports(*shown, frames[i].comment);
    CHECK(datagram.from == golden[i].from);
    CHECK(datagram.to == golden[i].to);
    CHECK(datagram.ip_id == golden[i].ip_id);
    CHECK(test::hex_of(datagram.bytes) == test::hex_of(golden[i].bytes));
  }
}

TEST_CASE("a pcap file is read in either byte order and either unit", "[packet][capture]") {
  std::string hex;
  std::uint64_t expected_ns = 0;
  SECTION("little-endian, microseconds, Ethernet") {
    hex =
        "d4c3b2a1 0200 0400 00000000 00000000 ffff0000 01000000"
        "02000000 05000000 2e000000 2e000000 ffffffffffff eeeeeeeeeeee 0800" +
        kIpv4Packet;
    expected_ns = 2'000'005'000;
  }
  SECTION("big-endian, nanoseconds, raw IP") {
    hex =
        "a1b23c4d 0002 0004 00000000 00000000 0000ffff 00000065"
        "00000002 00000005 00000020 00000020" +
        kIpv4Packet;
    expected_ns = 2'000'000'005;
  }
  const auto file = test::bytes_of(hex);
  const auto frames = frames_of(file);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].unix_time_ns == expected_ns);
  CHECK(frames[0].direction == CaptureDirection::Unknown);
  const auto datagram = find_datagram(frames[0]);
  REQUIRE(datagram);
  CHECK(datagram->from == Endpoint{test::ipv4(10, 0, 0, 1), 0x0102});
  CHECK(datagram->to == Endpoint{test::ipv4(10, 0, 0, 2), 4791});
  CHECK(datagram->ip_id == 7);
  CHECK(test::hex_of(datagram->bytes) == "61626364");
}

TEST_CASE("a big-endian pcapng with a coarser clock and unknown blocks is read", "[packet][capture]") {
  const auto file = test::bytes_of(
      "0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c"              // section header
      "00000001 00000020 0065 0000 00000000 0009 0001 03000000 0000 0000 00000020"  // 10^-3 s
      "00000bad 00000010 12345678 00000010"                                         // a block of another kind
      "00000006 00000040 00000000 00000000 000007d5 00000020 00000020" +
      kIpv4Packet + "00000040");
  const auto frames = frames_of(file);
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].unix_time_ns == 2'005'000'000);
  CHECK(find_datagram(frames[0]));
}

TEST_CASE("a file cut anywhere gives its whole packets and says that it is cut", "[packet][capture]") {
  std::vector<std::byte> file;
  append_pcapng_start(file);
  std::vector<std::size_t> ends = {file.size()};
  for (const test::GoldenPacket& packet : test::golden_packets("rej-no-listener")) {
    append_pcapng({1, true, packet.from, packet.to, {}, packet.bytes}, file);
    ends.push_back(file.size());
  }
  for (std::size_t size = 24; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    std::optional<CaptureReader> reader = CaptureReader::open(cut);
    REQUIRE(reader);
    std::size_t frames = 0;
    while (reader->next()) ++frames;
    const auto whole = std::count_if(ends.begin() + 1, ends.end(), [size](std::size_t end) { return end <= size; });
    REQUIRE(frames == static_cast<std::size_t>(whole));
    const bool at_an_end = std::find(ends.begin(), ends.end(), size) != ends.end();
    if (size > ends[0]) REQUIRE(reader->is_cut_short() == !at_an_end);
  }
}

TEST_CASE("what is no capture says so", "[packet][capture]") {
  CHECK_FALSE(CaptureReader::open({}));
  CHECK_FALSE(CaptureReader::open(test::bytes_of("0a0d0d0a")));
  CHECK_FALSE(CaptureReader::open(std::vector<std::byte>(100, std::byte{'x'})));
}

TEST_CASE("what is not one whole UDP datagram is none", "[packet][capture]") {
  const auto whole = test::bytes_of(kIpv4Packet);
  REQUIRE(find_datagram(raw_frame(whole)));
  const auto with = [&whole](std::size_t at, unsigned value) {
    auto bytes = whole;
    bytes[at] = static_cast<std::byte>(value);
    return find_datagram(raw_frame(bytes)).has_value();
  };
  CHECK_FALSE(with(0, 0x44));   // header shorter than its least
  CHECK_FALSE(with(0, 0x75));   // IP version 7
  CHECK_FALSE(with(3, 0x21));   // longer than the frame
  CHECK_FALSE(with(6, 0x20));   // more fragments
  CHECK_FALSE(with(9, 6));      // TCP
  CHECK_FALSE(with(25, 0x0d));  // UDP longer than IP
  CHECK_FALSE(with(25, 0x07));  // shorter than its header
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CHECK_FALSE(find_datagram(raw_frame(std::span(whole).first(size))));
  }
}

TEST_CASE("only a whole comment of ours changes the ports", "[packet][capture]") {
  const CapturedDatagram shown{{{}, 1}, {{}, 4791}, 0, {}};
  CHECK(with_true_ports(shown, "udp 40001>40002").from.port == 40001);
  CHECK(with_true_ports(shown, "udp 40001>40002").to.port == 40002);
  for (const char* other :
       {"", "udp", "udp ", "udp 1", "udp 5>", "udp 5>6 ", "udp 5>66666", "udp 99999>6", "tcp 5>6"}) {
    CHECK(with_true_ports(shown, other).from.port == 1);
    CHECK(with_true_ports(shown, other).to.port == 4791);
  }
}
