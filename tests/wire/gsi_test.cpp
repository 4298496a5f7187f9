// SPDX-License-Identifier: MIT
// Goal: QP 1 takes management datagrams and nothing else, and sends what was posted as the packets that Soft-RoCE also
// sends. Method: hand it decoded packets, take what it kept; post, then decode what comes out.
#include "wire/ud/gsi.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "wire/addressing.h"
#include "wire/packet/icrc.h"
#include "wire/packet/mad.h"
#include "wire/packet/packet.h"

namespace nicless::wire {
namespace {

Gid ipv4(std::uint8_t last) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = std::byte{last};
  return gid;
}

const Endpoint kHere{ipv4(1), 7471};
const Endpoint kThere{ipv4(2), 40000};

// An RTU by its header, and what follows it.
MadBytes filled(std::uint8_t value) {
  MadBytes bytes = encode(CmMessage{.tid = 7, .body = CmRtu{}});
  std::fill(bytes.begin() + 24, bytes.end(), std::byte{value});
  return bytes;
}

Headers mad_headers() {
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Ud, Op::SendOnly);
  headers.bth.dest_qp = kGsiQpn;
  headers.bth.ack_req = true;
  headers.deth = {kGsiQkey, kGsiQpn};
  return headers;
}

InDatagram from_there() {
  return {{}, kThere, kHere};
}

TEST_CASE("a management datagram is kept whole with its addresses, oldest first", "[gsi]") {
  Gsi gsi;
  CHECK(!gsi.has_arrivals());
  CHECK(!gsi.take());
  for (const std::uint8_t value : {1, 2}) {
    const MadBytes bytes = filled(value);
    gsi.on_packet({mad_headers(), bytes}, from_there());
  }
  for (const std::uint8_t value : {1, 2}) {
    CHECK(gsi.has_arrivals());
    const auto mad = gsi.take();
    REQUIRE(mad);
    CHECK(mad->from == kThere);
    CHECK(mad->to == kHere);
    CHECK(mad->bytes == filled(value));
  }
  CHECK(!gsi.has_arrivals());
  CHECK(gsi.dropped() == 0);
}

TEST_CASE("what is not a management datagram is dropped and counted", "[gsi]") {
  Gsi gsi;
  const MadBytes bytes = filled(3);
  Headers wrong_key = mad_headers();
  wrong_key.deth.qkey = 0x11111111;
  gsi.on_packet({wrong_key, bytes}, from_there());
  Headers wrong_opcode = mad_headers();
  wrong_opcode.bth.opcode = opcode_of(Service::Rc, Op::SendOnly);
  gsi.on_packet({wrong_opcode, bytes}, from_there());
  gsi.on_packet({mad_headers(), std::span(bytes).first(255)}, from_there());
  const std::vector<std::byte> longer(257);
  gsi.on_packet({mad_headers(), longer}, from_there());
  MadBytes other_class = bytes;
  other_class[1] = std::byte{0x04};  // performance management
  gsi.on_packet({mad_headers(), other_class}, from_there());
  MadBytes no_message = bytes;
  no_message[17] = std::byte{0x1b};  // behind the last attribute
  gsi.on_packet({mad_headers(), no_message}, from_there());
  CHECK(!gsi.has_arrivals());
  CHECK(gsi.dropped() == 6);
}

TEST_CASE("a flood of datagrams that nobody takes is bounded", "[gsi]") {
  Gsi gsi;
  const MadBytes bytes = filled(4);
  for (std::size_t i = 0; i < kGsiInboxMax + 3; ++i) gsi.on_packet({mad_headers(), bytes}, from_there());
  CHECK(gsi.dropped() == 3);
  gsi.take();
  gsi.on_packet({mad_headers(), bytes}, from_there());
  CHECK(gsi.dropped() == 3);
}

TEST_CASE("a posted datagram leaves as UD SEND_ONLY to QP 1 with counting PSNs", "[gsi]") {
  Gsi gsi;
  gsi.post({kHere, kThere, {0x60, 32}, filled(5)});
  gsi.post({kHere, kThere, {}, filled(6)});
  OutDatagram out;
  for (std::uint32_t psn = 0; psn < 2; ++psn) {
    REQUIRE(gsi.next_datagram(out));
    CHECK(out.from == Endpoint{kHere.address, 55410});  // as Soft-RoCE's; by default the engine has a say
    CHECK(out.to == kThere);
    CHECK(out.ip == (psn == 0 ? IpOptions{0x60, 32} : IpOptions{}));
    seal(out, 0);
    const auto bytes = to_bytes(out);
    CHECK(bytes.size() == 12 + 8 + 256 + 4);
    const Decoded decoded = decode(bytes);
    REQUIRE(decoded);
    Headers expected = mad_headers();
    expected.bth.psn = Psn(psn);
    CHECK(decoded.packet.headers == expected);
    const MadBytes sent = filled(static_cast<std::uint8_t>(5 + psn));
    CHECK(std::equal(sent.begin(), sent.end(), decoded.packet.payload.begin(), decoded.packet.payload.end()));
  }
  CHECK(!gsi.next_datagram(out));
}

}  // namespace
}  // namespace nicless::wire
