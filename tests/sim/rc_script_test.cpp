// SPDX-License-Identifier: MIT
// Goal: the exact packets of a reliable connection: what each message looks like on the wire, and what a packet of
// each kind does when it comes in its turn, once more, too early, or over the wrap of the sequence numbers.
// Method: an ExactPair; the test carries every packet by hand and compares whole packets and whole completions.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "queue/rng.h"
#include "tests/sim/script.h"
#include "wire/packet/icrc.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

TEST_CASE("a short send is one packet that asks for an ACK, and completes on both sides", "[rc][script]") {
  Script s;
  s.post_recv(7, 200);
  s.post(SendOpcode::Send, 1, 100);
  const Packets request = s.take(s.a);
  CHECK(request == Packets{s.from_a(Op::SendOnly, kPsnA, true, s.sent(0, 100))});
  s.give_all(s.b, request);
  CHECK(s.b.poll_recv() == Wcs{received(7, 100)});
  CHECK(s.arrived(100));
  CHECK(s.is_untouched(100));
  CHECK(s.a.poll_send().empty());
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.ack(kPsnA, 1)});
  s.give_all(s.a, answer);
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
  CHECK(s.is_at_rest());
}

TEST_CASE("a long send is first, middle and last, and only the last asks for an ACK", "[rc][script]") {
  Script s;
  s.post_recv(7, 3000);
  queue::Wqe wqe = s.request(SendOpcode::SendImm, 1, 2500);
  wqe.solicited = true;
  REQUIRE(s.a.post_send(s.now, wqe));
  Packet last = s.from_a(Op::SendLastImm, kPsnA + 2, true, s.sent(2048, 452));
  last.headers.bth.solicited = true;
  last.headers.imm.network_order = 0x04030201;
  const Packets request = s.take(s.a);
  CHECK(request == Packets{s.from_a(Op::SendFirst, kPsnA, false, s.sent(0, 1024)),
                           s.from_a(Op::SendMiddle, kPsnA + 1, false, s.sent(1024, 1024)), last});
  s.give_all(s.b, request);
  CHECK(s.take(s.b) == Packets{s.ack(kPsnA + 2, 1)});
  CHECK(s.b.poll_recv() == Wcs{received_imm(7, 2500)});
  CHECK(s.arrived(2500));
}

TEST_CASE("a message of n path MTUs has n packets, one byte more makes another", "[rc][script]") {
  const std::uint16_t mtu = GENERATE(256, 512, 1024, 2048, 4096);
  Script s({.path_mtu = mtu});
  const auto packets = [&](std::size_t length) {
    s.post_recv(0, length);
    s.post(SendOpcode::Send, 0, length);
    const Packets sent = s.take(s.a);
    s.give_all(s.b, sent);
    s.carry_all();
    CHECK(s.b.poll_recv() == Wcs{received(0, static_cast<std::uint32_t>(length))});
    CHECK(s.arrived(length));
    return sent.size();
  };
  CHECK(packets(0) == 1);
  CHECK(packets(1) == 1);
  CHECK(packets(mtu - 1u) == 1);
  CHECK(packets(mtu) == 1);
  CHECK(packets(mtu + 1u) == 2);
  CHECK(packets(3u * mtu) == 3);
  CHECK(packets(3u * mtu + 1) == 4);
}

TEST_CASE("a write names its target in its first packet and takes no receive", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Write, 1, 1500);
  const Packets request = s.take(s.a);
  Packet first = s.from_a(Op::WriteFirst, kPsnA, false, s.sent(0, 1024));
  first.headers.reth = {s.target.address(), s.target.rkey(), 1500};
  CHECK(request == Packets{first, s.from_a(Op::WriteLast, kPsnA + 1, true, s.sent(1024, 476))});
  s.give_all(s.b, request);
  CHECK(s.arrived(1500));
  CHECK(s.is_untouched(1500));
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1, WcOpcode::RdmaWrite)});
  CHECK(s.b.poll_recv().empty());
}

TEST_CASE("a write with immediate data takes a receive and leaves its memory alone", "[rc][script]") {
  Script s;
  s.post_recv(7, 100, 8000);
  s.post(SendOpcode::WriteImm, 1, 40);
  s.carry_all();
  CHECK(s.b.poll_recv() == Wcs{received_imm(7, 40, WcOpcode::RecvRdmaWithImm)});
  CHECK(s.arrived(40));
  CHECK(s.is_untouched(40));
}

TEST_CASE("zero bytes and no list at all are a message like any other", "[rc][script]") {
  Script s;
  s.post_recv(7, 0);
  s.post_recv(8, 0);
  s.post(SendOpcode::Send, 1, 0);
  s.post(SendOpcode::SendImm, 2, 0);
  s.post(SendOpcode::Read, 3, 0);
  s.carry_all();
  CHECK(s.b.poll_recv() == Wcs{received(7, 0), received_imm(8, 0)});
  CHECK(s.a.poll_send() == Wcs{sent_ok(1), sent_ok(2), read_ok(3, 0)});
  CHECK(s.is_untouched());
}

TEST_CASE("inline data is what it was when it was posted", "[rc][script]") {
  Script s;
  s.post_recv(7, 100);
  std::array<std::byte, 3> data{std::byte{1}, std::byte{2}, std::byte{3}};
  queue::Wqe wqe;
  wqe.wr_id = 1;
  wqe.has_inline_data = true;
  wqe.inline_data = data;
  REQUIRE(s.a.post_send(s.now, wqe));
  data.fill(std::byte{9});
  s.carry_all();
  CHECK(s.target.bytes()[0] == std::byte{1});
  CHECK(s.target.bytes()[2] == std::byte{3});
}

TEST_CASE("requests that arrive together are acknowledged together", "[rc][script]") {
  Script s;
  for (std::uint64_t i = 0; i < 5; ++i) s.post_recv(i, 10);
  for (std::uint64_t i = 0; i < 5; ++i) s.post(SendOpcode::Send, i, 10);
  s.give_all(s.b, s.take(s.a));
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.ack(kPsnA + 4, 5)});
  s.give_all(s.a, answer);
  CHECK(s.a.poll_send().size() == 5);
}

TEST_CASE("an unsignalled request completes in silence, and its place comes back with the next that speaks",
          "[rc][script]") {
  Script s;
  for (std::uint64_t i = 0; i < 3; ++i) {
    s.post_recv(i, 10);
    queue::Wqe wqe = s.request(SendOpcode::Send, i, 10);
    wqe.signaled = i == 2;
    REQUIRE(s.a.post_send(s.now, wqe));
  }
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(2)});
  CHECK(s.is_at_rest());
}

// One message of each kind; with at most three packets.
struct Kind {
  SendOpcode opcode;
  std::size_t length;
};
const std::array kKinds{Kind{SendOpcode::Send, 10},      Kind{SendOpcode::Send, 3000},    Kind{SendOpcode::SendImm, 10},
                        Kind{SendOpcode::SendImm, 3000}, Kind{SendOpcode::Write, 10},     Kind{SendOpcode::Write, 3000},
                        Kind{SendOpcode::WriteImm, 10},  Kind{SendOpcode::WriteImm, 3000}};

TEST_CASE("a packet that came before is acknowledged again and does nothing again", "[rc][script]") {
  const Kind kind = kKinds[GENERATE(range(std::size_t{0}, kKinds.size()))];
  Script s;
  s.post_recv(7, 4000);
  s.post_recv(8, 4000);
  s.post(kind.opcode, 1, kind.length);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  const auto last_psn = static_cast<std::uint32_t>(kPsnA + request.size() - 1);
  CHECK(s.take(s.b) == Packets{s.ack(last_psn, 1)});
  s.b.poll_recv();
  std::fill(s.target.bytes().begin(), s.target.bytes().end(), std::byte{0xa5});
  for (const Packet& packet : request) {
    s.give(s.b, packet);
    CHECK(s.take(s.b) == Packets{s.ack(last_psn, 1)});
  }
  CHECK(s.b.poll_recv().empty());
  CHECK(s.is_untouched());
  CHECK(s.b.qp().counters() == wire::QpCounters{.duplicate = request.size()});
}

TEST_CASE("a packet from the future is answered by one NAK that names the missing one", "[rc][script]") {
  const Kind kind = kKinds[GENERATE(range(std::size_t{0}, kKinds.size()))];
  Script s;
  s.post_recv(7, 4000);
  s.post_recv(8, 4000);
  s.post(SendOpcode::Write, 0, 0);
  s.post(kind.opcode, 1, kind.length);
  const Packets requests = s.take(s.a);
  for (std::size_t i = 1; i < requests.size(); ++i) s.give(s.b, requests[i]);
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(wire::NakCode::PsnSequenceError, kPsnA, 0)});
  CHECK(s.is_untouched());
  CHECK(s.b.poll_recv().empty());

  s.give_all(s.a, answer);
  // Go-back-N: everything from the named one on.
  CHECK(without_ack_req(s.take(s.a)) == without_ack_req(requests));
  s.give_all(s.b, requests);
  s.carry_all();
  CHECK(s.a.poll_send().size() == 2);
  CHECK(s.is_at_rest());
  CHECK(s.a.qp().counters() == wire::QpCounters{.sequence_naks_received = 1, .resends = 1});
  CHECK(s.b.qp().counters() == wire::QpCounters{.out_of_sequence = requests.size() - 1});
}

TEST_CASE("a packet that is lost once more is named once more", "[rc][script]") {
  Script s;
  s.post_recv(7, 4000);
  s.post(SendOpcode::Send, 1, 4000);
  const Packets requests = s.take(s.a);
  const Packets nak{s.nak(wire::NakCode::PsnSequenceError, kPsnA, 0)};
  for (std::size_t i = 1; i < 4; ++i) {
    s.give(s.b, requests[i]);
    CHECK(s.take(s.b) == (i == 1 ? nak : Packets{}));
  }
  s.give(s.b, requests[2]);  // older than the newest: A has gone back
  CHECK(s.take(s.b) == nak);
  s.give(s.b, requests[3]);
  CHECK(s.take(s.b).empty());
  s.give_all(s.a, nak);
  CHECK(without_ack_req(s.take(s.a)) == without_ack_req(requests));
  s.give_all(s.a, nak);
  CHECK(without_ack_req(s.take(s.a)) == without_ack_req(requests));
  s.give_all(s.b, requests);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("go-back-N resumes in the middle of a message, at exactly the packet that was lost", "[rc][script]") {
  Script s;
  s.post_recv(7, 4000);
  s.post(SendOpcode::Send, 1, 4000);
  const Packets requests = s.take(s.a);
  REQUIRE(requests.size() == 4);
  s.give(s.b, requests[0]);
  s.give(s.b, requests[2]);
  s.give(s.b, requests[3]);
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(wire::NakCode::PsnSequenceError, kPsnA + 1, 0)});
  s.give_all(s.a, answer);
  const Packets again = s.take(s.a);
  CHECK(without_ack_req(again) == without_ack_req({requests.begin() + 1, requests.end()}));
  s.give_all(s.b, again);
  s.carry_all();
  CHECK(s.b.poll_recv() == Wcs{received(7, 4000)});
  CHECK(s.arrived(4000));
}

TEST_CASE("sequence numbers wrap in the middle of every kind of message", "[rc][script]") {
  const std::uint32_t start = GENERATE(0xfffffdu, 0xfffffeu, 0xffffffu, 0x000000u);
  Script s({.a_psn = start, .b_psn = start});
  s.post_recv(7, 4000);
  s.post_recv(8, 4000);
  s.post(SendOpcode::Send, 1, 3000);
  s.post(SendOpcode::Read, 2, 3000);
  s.post(SendOpcode::WriteImm, 3, 3000);
  const Packets requests = s.take(s.a);
  REQUIRE(requests.size() == 7);
  CHECK(requests[3].headers.bth.psn == wire::Psn(start + 3));
  CHECK(requests[6].headers.bth.psn == wire::Psn(start + 8));
  s.give_all(s.b, requests);
  s.give_all(s.b, requests);  // duplicates over the wrap are still seen as such
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1), read_ok(2, 3000), sent_ok(3, WcOpcode::RdmaWrite)});
  CHECK(s.b.poll_recv() == Wcs{received(7, 3000), received_imm(8, 3000, WcOpcode::RecvRdmaWithImm)});
  CHECK(s.is_at_rest());
}

TEST_CASE("acknowledgements of what was never sent, or long done, change nothing", "[rc][script]") {
  Script s;
  s.post_recv(7, 10);
  s.post(SendOpcode::Send, 1, 10);
  const Packets request = s.take(s.a);
  for (const std::uint32_t psn : {kPsnA + 1, kPsnA + 100, kPsnA - 1, kPsnA - 1000, kPsnA + 0x800000}) {
    s.give(s.a, s.ack(psn, 1));
    s.give(s.a, s.nak(wire::NakCode::RemoteAccessError, psn, 1));
    s.give(s.a, make_ack(s.a.qpn(), psn, wire::Aeth::rnr(1, 1)));
  }
  CHECK(s.a.poll_send().empty());
  CHECK(s.a.qp().state() == wire::QpState::Rts);
  CHECK(s.take(s.a).empty());
  s.give_all(s.b, request);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("a packet from another address is dropped and counted, whatever it says", "[rc][script]") {
  Script s;
  s.post_recv(7, 100);
  s.post(SendOpcode::Send, 1, 100);
  const Packets request = s.take(s.a);
  const wire::Endpoint stranger{address_of(9), s.a.endpoint().port};
  s.give_from(stranger, s.b, request[0]);
  s.give_from(stranger, s.a, s.ack(kPsnA, 1));
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_recv().empty());
  CHECK(s.a.poll_send().empty());
  CHECK(s.a.qp().counters().wrong_source == 1);
  CHECK(s.b.qp().counters().wrong_source == 1);
  s.give_all(s.b, request);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("garbage, truncated packets and other queue pairs' packets are counted and change nothing", "[rc][script]") {
  Script s;
  s.post_recv(7, 100);
  s.post(SendOpcode::Send, 1, 100);
  const Packets request = s.take(s.a);
  queue::Rng rng(5);
  std::vector<std::byte> bytes;
  for (int i = 0; i < 500; ++i) {
    bytes.resize(rng.below(200));
    for (auto& byte : bytes) byte = static_cast<std::byte>(rng.next_u32());
    s.give_bytes(s.b, bytes);
  }
  wire::OutDatagram out;
  out.from = s.a.endpoint();
  out.to = s.b.endpoint();
  out.spans[0] = request[0].payload;
  out.span_count = 1;
  out.payload_bytes = request[0].payload.size();
  wire::finish_headers(request[0].headers, out);
  wire::seal(out, 0);
  const auto whole = wire::to_bytes(out);
  for (std::size_t length = 0; length < whole.size(); ++length) s.give_bytes(s.b, std::span(whole).first(length));
  Packet elsewhere = request[0];
  elsewhere.headers.bth.dest_qp = queue::Qpn(s.b.qpn().value() + 1);
  s.give(s.b, elsewhere);

  const wire::EngineCounters& c = s.b.engine().counters();
  CHECK(c.unknown_qpn == 1);
  CHECK(c.truncated + c.bad_version + c.unknown_opcode + c.bad_pad + c.bad_icrc == 500 + whole.size());
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_recv().empty());
  CHECK(s.is_untouched());
  s.give_bytes(s.b, whole);
  CHECK(s.b.poll_recv() == Wcs{received(7, 100)});
}

}  // namespace
}  // namespace nicless::sim
