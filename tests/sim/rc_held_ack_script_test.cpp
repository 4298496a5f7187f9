// SPDX-License-Identifier: MIT
// Goal: an acknowledgement that is kept back follows the program's next request, leaves by itself when it is let go,
// and never stands in the way of anything that says more.
// Method: an ExactPair; the test holds and releases by hand and compares whole packets.
#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

// B has received a SEND of A's and keeps its acknowledgement back.
struct Held : Script {
  Held() {
    post_recv(7, 200);
    post(SendOpcode::Send, 1, 100);
    give_all(b, take(a));
    REQUIRE(b_engine.hold_acknowledgement());
    REQUIRE(take(b).empty());
  }
  Packet ack_of_first() { return ack(kPsnA, 1); }
};

TEST_CASE("an acknowledgement that is kept back follows the next request", "[rc][script]") {
  Held s;
  queue::Wqe empty;
  REQUIRE(s.b.post_send(s.now, empty));
  const Packets sent = s.take(s.b);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].headers.bth.opcode == static_cast<std::uint8_t>(Op::SendOnly));
  CHECK(sent[1] == s.ack_of_first());
  s.give_all(s.a, {sent[1]});
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("an acknowledgement that is kept back leaves when it is let go, once", "[rc][script]") {
  Held s;
  CHECK(s.b_engine.release_acknowledgement());
  CHECK_FALSE(s.b_engine.release_acknowledgement());
  CHECK(s.take(s.b) == Packets{s.ack_of_first()});
  CHECK(s.take(s.b).empty());
}

TEST_CASE("what arrives while an acknowledgement is kept back is acknowledged with it at once", "[rc][script]") {
  Held s;
  s.post_recv(8, 200);
  s.post(SendOpcode::Send, 2, 100);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.take(s.b) == Packets{s.ack(kPsnA + 1, 2)});
}

TEST_CASE("a NAK is not kept back", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Send, 1, 100);  // no receive is posted
  s.give_all(s.b, s.take(s.a));
  CHECK_FALSE(s.b_engine.hold_acknowledgement());
  CHECK(s.take(s.b).size() == 1);
}

TEST_CASE("an engine that owes nothing keeps nothing back", "[rc][script]") {
  Script s;
  CHECK_FALSE(s.b_engine.hold_acknowledgement());
  CHECK_FALSE(s.b_engine.release_acknowledgement());
}

}  // namespace
}  // namespace nicless::sim
