// SPDX-License-Identifier: MIT
// Goal: the exact packets of RDMA reads, and what becomes of a read when a request or a response is lost, late or
// doubled. Method: an ExactPair; the test carries every packet by hand.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

TEST_CASE("a read has as many sequence numbers as its response has packets", "[rc][script]") {
  Script s;
  std::copy_n(s.source.bytes().begin(), 4000, s.target.bytes().begin());
  std::fill_n(s.source.bytes().begin(), 4000, std::byte{0});
  s.post(SendOpcode::Read, 1, 2500);
  s.post(SendOpcode::Write, 2, 0);
  Packet read = s.from_a(Op::ReadRequest, kPsnA, true);
  read.headers.reth = {s.target.address(), s.target.rkey(), 2500};
  Packet write = s.from_a(Op::WriteOnly, kPsnA + 3, true);
  write.headers.reth = {s.target.address(), s.target.rkey(), 0};
  const Packets requests = s.take(s.a);
  CHECK(requests == Packets{read, write});
  s.give_all(s.b, requests);

  const auto data = s.target.bytes();
  Packet first = make_packet(Op::ReadResponseFirst, s.a.qpn(), kPsnA, data.first(1024));
  first.headers.aeth = wire::Aeth::ack(1);
  const Packet middle = make_packet(Op::ReadResponseMiddle, s.a.qpn(), kPsnA + 1, data.subspan(1024, 1024));
  Packet last = make_packet(Op::ReadResponseLast, s.a.qpn(), kPsnA + 2, data.subspan(2048, 452));
  last.headers.aeth = wire::Aeth::ack(1);
  const Packets responses = s.take(s.b);
  CHECK(responses == Packets{first, middle, last, s.ack(kPsnA + 3, 2)});
  s.give_all(s.a, responses);
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 2500), sent_ok(2, WcOpcode::RdmaWrite)});
  CHECK(std::equal(data.begin(), data.begin() + 2500, s.source.bytes().begin()));
  CHECK(s.source.bytes()[2500] == std::byte{0});
}

TEST_CASE("a duplicate read is answered again, not executed again", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Read, 1, 2500);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  const Packets responses = s.take(s.b);
  REQUIRE(responses.size() == 3);
  s.give_all(s.b, request);
  CHECK(s.take(s.b) == responses);  // with the same MSN: no request was added

  Packet rest = request[0];  // the same read from its second packet on
  rest.headers.bth.psn = wire::Psn(kPsnA + 1);
  rest.headers.reth.address += kMtu;
  rest.headers.reth.length -= kMtu;
  s.give(s.b, rest);
  const Packets again = s.take(s.b);
  REQUIRE(again.size() == 2);
  CHECK(again[0].headers.bth.opcode == wire::opcode_of(wire::Service::Rc, Op::ReadResponseFirst));
  CHECK(again[0].payload == responses[1].payload);
  CHECK(again[1] == responses[2]);

  s.post(SendOpcode::Write, 2, 1);  // and the connection goes on where it was
  s.give_all(s.a, responses);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 2500), sent_ok(2, WcOpcode::RdmaWrite)});
}

TEST_CASE("a duplicate read beside a new one is no read too many", "[rc][script]") {
  Script s({.max_rd_atomic = 1, .max_dest_rd_atomic = 1});
  s.post(SendOpcode::Read, 1, 100);
  s.post(SendOpcode::Read, 2, 100);
  const Packets first = s.take(s.a);
  REQUIRE(first.size() == 1);  // one at a time
  s.give_all(s.b, first);
  s.give_all(s.a, s.take(s.b));
  const Packets second = s.take(s.a);
  REQUIRE(second.size() == 1);
  s.give_all(s.b, first);  // the network delivers the first one once more, at the same moment
  s.give_all(s.b, second);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 100), read_ok(2, 100)});
  CHECK(s.b.qp().state() == wire::QpState::Rts);
}

TEST_CASE("a lost response makes the requester ask for the rest of the read", "[rc][script]") {
  Script s;
  std::copy_n(s.source.bytes().begin(), 4000, s.target.bytes().begin());
  s.post(SendOpcode::Read, 1, 4000);
  s.give_all(s.b, s.take(s.a));
  const Packets responses = s.take(s.b);
  REQUIRE(responses.size() == 4);
  s.give(s.a, responses[0]);
  s.give(s.a, responses[2]);
  Packet rest = s.from_a(Op::ReadRequest, kPsnA + 1, true);
  rest.headers.reth = {s.target.address(kMtu), s.target.rkey(), 4000 - kMtu};
  const Packets again = s.take(s.a);
  CHECK(again == Packets{rest});
  s.give_all(s.b, again);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 4000)});
  CHECK(s.is_at_rest());
}

TEST_CASE("going back makes no more reads of the same, so that the responder still knows them all", "[rc][script]") {
  // Two reads are under way, as many as the responder remembers. After the timeout the window is shorter than the first
  // one, which is asked for whole all the same: cut in two, it would push the other out of the responder's memory.
  Script s({.path_mtu = 256, .max_rd_atomic = 2, .max_dest_rd_atomic = 2});
  s.post(SendOpcode::Read, 1, 3000);
  s.post(SendOpcode::Read, 2, 100);
  s.post(SendOpcode::Read, 3, 100);
  const Packets requests = s.take(s.a);
  REQUIRE(requests.size() == 2);
  for (int i = 0; i < 3; ++i) {
    s.expire(s.a);
    CHECK(s.take(s.a) == Packets{requests[0]});
  }
  s.give_all(s.b, requests);  // late, not lost
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 3000), read_ok(2, 100), read_ok(3, 100)});
}

TEST_CASE("a region that goes while its read is answered ends in NAK and QP_ACCESS_ERR", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Read, 11, kMtu);
  s.give_all(s.b, s.take(s.a));
  REQUIRE(s.b.regions().remove(s.target.lkey()));
  const auto answer = s.take(s.b);
  CHECK(answer == std::vector{s.nak(wire::NakCode::RemoteAccessError, kPsnA, 1)});
  CHECK(events_of(s.b) == std::vector{queue::AsyncType::QpAccessErr});
  CHECK(s.b.qp().state() == wire::QpState::Err);
  s.give_all(s.a, answer);
  CHECK(s.a.poll_send() == std::vector<Wc>{failed(11, queue::WcStatus::RemAccessErr)});
}

TEST_CASE("an ACK beyond an unanswered read does not complete it", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Read, 1, 100);
  s.post(SendOpcode::Write, 2, 100);
  const Packets requests = s.take(s.a);
  s.give_all(s.b, requests);
  const Packets answers = s.take(s.b);
  REQUIRE(answers.size() == 2);
  s.give(s.a, answers[1]);
  CHECK(s.a.poll_send().empty());
  CHECK(s.take(s.a) == requests);  // an implied NAK: IBTA 9.7.5.1.1
  s.give_all(s.b, requests);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 100), sent_ok(2, WcOpcode::RdmaWrite)});
}

}  // namespace
}  // namespace nicless::sim
