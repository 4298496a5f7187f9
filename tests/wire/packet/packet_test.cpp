// SPDX-License-Identifier: MIT
// Goal: a datagram becomes headers and payload, or says why not; headers become the same bytes again. Method: captured
// packets, each way a datagram can be wrong, and a round trip for every opcode.
#include "wire/packet/packet.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr const char* kAck = "1100ffff00000020009c37bb 1f000001 9146b882";
constexpr const char* kReadRequest = "0c00ffff00000020802284da 00005564d3910370 00002157 00000040 c883a98c";
constexpr const char* kSendOneByte = "0430ffff0000002c80f81f82 7b000000 00000000";

DecodeError error_of(const std::vector<std::byte>& bytes) {
  return decode(bytes).error;
}

std::string encoded_headers(const Headers& headers) {
  std::array<std::byte, kHeaderBytesMax> out;
  out.fill(std::byte{0xa5});
  return test::hex_of(std::span(out).first(encode(headers, out)));
}

}  // namespace

TEST_CASE("an acknowledge decodes to BTH and AETH and no payload", "[packet]") {
  const auto bytes = test::bytes_of(kAck);
  const Decoded decoded = decode(bytes);
  REQUIRE(decoded);
  Headers expected;
  expected.bth.opcode = opcode_of(Service::Rc, Op::Acknowledge);
  expected.bth.dest_qp = queue::Qpn(0x20);
  expected.bth.psn = Psn(0x9c37bb);
  expected.aeth = Aeth::ack(1);
  CHECK(decoded.packet.headers == expected);
  CHECK(decoded.packet.payload.empty());
  CHECK(encoded_headers(expected) == "1100ffff00000020009c37bb1f000001");
}

TEST_CASE("a read request decodes to BTH and RETH", "[packet]") {
  const auto bytes = test::bytes_of(kReadRequest);
  const Decoded decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(decoded.packet.headers.reth == Reth{0x5564d3910370, queue::RKey(0x2157), 64});
  CHECK(decoded.packet.headers.aeth == Aeth{});
  CHECK(encoded_headers(decoded.packet.headers) == "0c00ffff00000020802284da00005564d39103700000215700000040");
}

TEST_CASE("the payload ends before the pad", "[packet]") {
  const auto bytes = test::bytes_of(kSendOneByte);
  const Decoded decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(test::hex_of(decoded.packet.payload) == "7b");
  CHECK(decoded.packet.payload.data() == bytes.data() + 12);  // a view, not a copy
}

TEST_CASE("every datagram that is cut short says so", "[packet]") {
  for (const char* hex : {kAck, kReadRequest}) {
    const auto bytes = test::bytes_of(hex);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      CHECK(error_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}) == DecodeError::Truncated);
    }
  }
}

TEST_CASE("what is not a packet says why", "[packet]") {
  auto bytes = test::bytes_of(kSendOneByte);
  SECTION("another version") {
    bytes[1] = std::byte{0x31};
    CHECK(error_of(bytes) == DecodeError::BadVersion);
  }
  SECTION("an opcode of no service") {
    bytes[0] = std::byte{0x15};
    CHECK(error_of(bytes) == DecodeError::UnknownOpcode);
  }
  SECTION("more pad than payload") {
    bytes.erase(bytes.begin() + 12, bytes.begin() + 16);
    CHECK(error_of(bytes) == DecodeError::BadPad);
  }
  SECTION("payload and pad are no whole words") {
    bytes.erase(bytes.begin() + 12);
    CHECK(error_of(bytes) == DecodeError::BadPad);
  }
  SECTION("an acknowledge with a payload") {
    auto ack = test::bytes_of(kAck);
    ack.insert(ack.begin() + 16, 4, std::byte{0});
    CHECK(error_of(ack) == DecodeError::BadPad);
  }
  SECTION("every reason has words") {
    for (int i = 0; i <= static_cast<int>(DecodeError::BadIcrc); ++i) {
      CHECK(std::string(describe(static_cast<DecodeError>(i))).size() > 3);
    }
  }
}

TEST_CASE("headers of every opcode come back as they went", "[packet]") {
  const int opcode = GENERATE(range(0, 256));
  const OpcodeInfo* info = find_opcode(static_cast<std::uint8_t>(opcode));
  if (info == nullptr) return;
  Headers headers;
  headers.bth.opcode = static_cast<std::uint8_t>(opcode);
  headers.bth.dest_qp = queue::Qpn(0x8f1203);
  headers.bth.psn = Psn(0xfedcba);
  if (info->has_deth) headers.deth = {0x80010000, queue::Qpn(1)};
  if (info->has_xrceth) headers.xrc = {queue::Srqn(0xabcdef)};
  if (info->has_reth) headers.reth = {0x0123456789abcdef, queue::RKey(0xdeadbeef), 0x7fffffff};
  if (info->has_atomic) headers.atomic = {1, queue::RKey(2), 3, 4};
  if (info->has_aeth) headers.aeth = Aeth::nak(NakCode::RemoteOperationalError, 0x123456);
  if (info->has_atomic_ack) headers.atomic_ack = {0x1122334455667788};
  if (info->has_imm) headers.imm = {0x04030201};
  if (info->has_ieth) headers.ieth = {queue::RKey(0xcafe)};

  std::array<std::byte, kHeaderBytesMax + kIcrcBytes> out;
  out.fill(std::byte{0xa5});
  const std::size_t size = encode(headers, std::span(out).first<kHeaderBytesMax>());
  CHECK(size == info->header_bytes);
  CHECK((size == kHeaderBytesMax || out[size] == std::byte{0xa5}));  // not a byte more
  const Decoded decoded = decode(std::span(out).first(size + kIcrcBytes));
  REQUIRE(decoded);
  CHECK(decoded.packet.headers == headers);
}

TEST_CASE("pad brings a payload to whole words", "[packet]") {
  CHECK(pad_for(0) == 0);
  CHECK(pad_for(1) == 3);
  CHECK(pad_for(2) == 2);
  CHECK(pad_for(3) == 1);
  CHECK(pad_for(4) == 0);
}
