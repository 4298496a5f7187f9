// SPDX-License-Identifier: MIT
// Goal: a datagram's sizes, pad and bytes follow from its headers and its payload spans. Method: payloads of every
// remainder, in several spans.
#include "wire/packet/datagram.h"

#include <catch2/catch.hpp>
#include <string_view>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("a datagram is headers, spans in order, pad and ICRC", "[packet][datagram]") {
  const auto first = test::bytes_of("0102"), second = test::bytes_of("030405");
  OutDatagram out;
  out.trailer.fill(std::byte{0xa5});
  out.header.fill(std::byte{0xa5});
  out.spans[0] = first;
  out.spans[1] = second;
  out.span_count = 2;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, Op::SendOnly);
  headers.bth.dest_qp = queue::Qpn(0x2c);
  finish_headers(headers, out);
  CHECK(out.payload_bytes == 5);
  CHECK(out.pad_bytes == 3);
  CHECK(out.size() == 12 + 5 + 3 + 4);
  CHECK(out.trailer_view().size() == 7);
  CHECK(test::hex_of(to_bytes(out)) ==
        "0430ffff0000002c00000000"
        "0102030405"
        "000000"
        "00000000");
}

TEST_CASE("a datagram without payload has no pad", "[packet][datagram]") {
  OutDatagram out;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, Op::Acknowledge);
  headers.bth.pad_count = 2;  // whatever the caller left there
  headers.aeth = Aeth::ack(1);
  finish_headers(headers, out);
  CHECK(out.size() == 20);
  CHECK(test::hex_of(to_bytes(out)) ==
        "1100ffff0000000000000000"
        "1f000001"
        "00000000");
}

TEST_CASE("the pad count fits any payload", "[packet][datagram]") {
  const std::size_t size = GENERATE(range(std::size_t{0}, std::size_t{9}));
  const std::vector<std::byte> payload(size, std::byte{0x7b});
  OutDatagram out;
  out.spans[0] = payload;
  out.span_count = 1;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Ud, Op::SendOnlyImm);
  finish_headers(headers, out);
  const auto bytes = to_bytes(out);
  CHECK(bytes.size() == out.size());
  const Decoded decoded = decode(bytes);
  REQUIRE(decoded);
  CHECK(decoded.packet.payload.size() == size);
}
