// SPDX-License-Identifier: MIT
// Goal: each way in which a request can fail ends in the right status at both ends, with the right NAK between them,
// and everything behind it is flushed in order. Method: an ExactPair, packets carried and forged by hand.
#include <array>
#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using wire::NakCode;
using wire::Op;
using wire::QpState;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

// A's first request fails with `status`, those behind it are flushed, and A is in ERR.
void check_failed(Script& s, WcStatus status) {
  CHECK(s.a.poll_send() == Wcs{failed(1, status), failed(2, WcStatus::WrFlushErr), failed(3, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Err);
  CHECK(s.take(s.a).empty());
  CHECK(!s.a.engine().next_deadline());
}

TEST_CASE("a message longer than the receive ends in LOC_LEN_ERR here and REM_INV_REQ_ERR there", "[rc][nak]") {
  const std::size_t length = GENERATE(101, 1025, 3000);
  Script s;
  s.post_recv(7, length == 101 ? 100 : length - 1);
  s.post_recv(8, 100);
  s.post(SendOpcode::Send, 1, length);
  const Packets request = s.take(s.a);
  s.post(SendOpcode::Send, 2, 10);
  s.post(SendOpcode::Send, 3, 10);
  s.give_all(s.b, request);
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::LocLenErr), failed(8, WcStatus::WrFlushErr)});
  CHECK(s.b.qp().state() == QpState::Err);
  CHECK(s.is_untouched(length - 1));
  const auto last = static_cast<std::uint32_t>(kPsnA + request.size() - 1);
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(NakCode::InvalidRequest, last, 0)});
  s.give_all(s.a, answer);
  check_failed(s, WcStatus::RemInvReqErr);
}

TEST_CASE("a receive whose memory may not be written ends in LOC_PROT_ERR here and REM_OP_ERR there", "[rc][nak]") {
  Script s;
  const Buffer read_only = s.b.make_buffer(100, 0);
  const int what = GENERATE(0, 1, 2);
  const std::array bad{queue::Sge{s.target.address(), 100, queue::LKey(s.target.lkey().value() ^ 0x40)},
                       queue::Sge{s.target.address(kMemoryBytes - 50), 100, s.target.lkey()}, read_only.sge(0, 100)};
  REQUIRE(s.b.post_recv(7, {&bad[static_cast<std::size_t>(what)], 1}));
  for (std::uint64_t i = 1; i <= 3; ++i) s.post(SendOpcode::Send, i, 100);
  s.give(s.b, s.take(s.a)[0]);
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::LocProtErr)});
  CHECK(s.is_untouched());
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(NakCode::RemoteOperationalError, kPsnA, 0)});
  s.give_all(s.a, answer);
  check_failed(s, WcStatus::RemOpErr);
}

TEST_CASE("a bad list of the sender fails in its turn, and nothing of it is sent", "[rc][nak]") {
  Script s;
  s.post_recv(7, 100);
  s.post(SendOpcode::Send, 0, 100);
  queue::Wqe wqe = s.request(SendOpcode::Send, 1, 100);
  s.sge.lkey = queue::LKey(s.sge.lkey.value() ^ 0x40);
  REQUIRE(s.a.post_send(s.now, wqe));
  s.post(SendOpcode::Send, 2, 100);
  s.post(SendOpcode::Send, 3, 100);
  const Packets request = s.take(s.a);
  CHECK(request.size() == 1);
  CHECK(s.a.poll_send().empty());
  s.give_all(s.b, request);
  s.give_all(s.a, s.take(s.b));
  const Wcs wcs = s.a.poll_send();
  CHECK(wcs == Wcs{sent_ok(0), failed(1, WcStatus::LocProtErr), failed(2, WcStatus::WrFlushErr),
                   failed(3, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Err);
}

TEST_CASE("a loss before a request with a bad list is still repaired", "[rc][nak]") {
  Script s;
  s.post_recv(7, 100);
  s.post(SendOpcode::Send, 0, 100);
  queue::Wqe wqe = s.request(SendOpcode::Send, 1, 100);
  s.sge.lkey = queue::LKey(s.sge.lkey.value() ^ 0x40);
  REQUIRE(s.a.post_send(s.now, wqe));
  const Packets lost = s.take(s.a);
  REQUIRE(lost.size() == 1);
  s.expire(s.a);
  CHECK(s.take(s.a) == lost);
  s.give_all(s.b, lost);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(0), failed(1, WcStatus::LocProtErr)});
  CHECK(s.b.poll_recv() == Wcs{received(7, 100)});
}

TEST_CASE("a write or read by a wrong key or outside the region is refused and touches nothing", "[rc][nak]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Write, SendOpcode::WriteImm, SendOpcode::Read);
  const int what = GENERATE(0, 1, 2, 3);
  const std::size_t length = GENERATE(64, 3000);
  Script s;
  s.post_recv(7, 0);
  const Buffer closed = s.b.make_buffer(4096, queue::kAccessLocalWrite);
  queue::Wqe wqe = s.request(opcode, 1, length);
  if (what == 0) wqe.rkey = queue::RKey(wqe.rkey.value() ^ 0x100);  // forged
  if (what == 1) wqe.remote_addr += kMemoryBytes - length + 1;      // one byte beyond
  if (what == 2) wqe.remote_addr -= 1;                              // one byte before
  if (what == 3) {                                                  // a region without the right
    wqe.remote_addr = closed.address();
    wqe.rkey = closed.rkey();
  }
  REQUIRE(s.a.post_send(s.now, wqe));
  s.post(SendOpcode::Write, 2, 10);
  s.post(SendOpcode::Write, 3, 10);
  s.give(s.b, s.take(s.a)[0]);
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(NakCode::RemoteAccessError, kPsnA, 0)});  // names the first packet
  CHECK(s.is_untouched());
  CHECK(s.b.qp().state() == QpState::Err);
  CHECK(events_of(s.b) == std::vector{queue::AsyncType::QpAccessErr});
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::WrFlushErr)});
  s.give_all(s.a, answer);
  check_failed(s, WcStatus::RemAccessErr);
}

TEST_CASE("a queue pair without remote access takes it for invalid, whatever the region would allow", "[rc][nak]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Write, SendOpcode::Read);
  Script s({.access = queue::kAccessLocalWrite});
  for (std::uint64_t i = 1; i <= 3; ++i) s.post(opcode, i, 10);
  s.give(s.b, s.take(s.a)[0]);
  s.give_all(s.a, s.take(s.b));
  CHECK(s.is_untouched());
  CHECK(events_of(s.b) == std::vector{queue::AsyncType::QpReqErr});
  check_failed(s, WcStatus::RemInvReqErr);
}

TEST_CASE("a request that makes no sense where it stands is refused as invalid", "[rc][nak]") {
  Script s;
  s.post_recv(7, 8000);
  s.post_recv(8, 8000);
  const std::vector<std::byte> full(kMtu, std::byte{1});
  const std::vector<std::byte> more(kMtu + 4, std::byte{1});
  const wire::Reth reth{s.target.address(), s.target.rkey(), 2000};
  const auto with_reth = [&](Packet packet) {
    packet.headers.reth = reth;
    return packet;
  };
  const auto second = [&](Op op, std::span<const std::byte> payload) { return s.from_a(op, kPsnA + 1, true, payload); };
  const Packet send_first = s.from_a(Op::SendFirst, kPsnA, false, full);
  const Packet write_first = with_reth(s.from_a(Op::WriteFirst, kPsnA, false, full));
  const std::vector<Packets> nonsense{
      {s.from_a(Op::SendMiddle, kPsnA, true, full)},
      {s.from_a(Op::SendLast, kPsnA, true, full)},
      {s.from_a(Op::WriteMiddle, kPsnA, true, full)},
      {s.from_a(Op::WriteLast, kPsnA, true, full)},
      {s.from_a(Op::SendOnly, kPsnA, true, more)},
      {s.from_a(Op::SendFirst, kPsnA, false, std::span(full).first(kMtu - 4))},
      {with_reth(s.from_a(Op::WriteOnly, kPsnA, true, full))},  // says 2000, brings 1024
      {send_first, second(Op::SendOnly, full)},
      {send_first, with_reth(second(Op::WriteOnly, full))},
      {send_first, second(Op::WriteLast, full)},
      {send_first, with_reth(second(Op::ReadRequest, {}))},
      {send_first, second(Op::SendLast, {})},
      {write_first, second(Op::SendLast, full)},
      {write_first, second(Op::WriteLast, full)},  // 2048 of 2000
      {write_first, second(Op::WriteLast, std::span(full).first(500))},
      {write_first, second(Op::WriteMiddle, full)}};
  const std::size_t which = GENERATE(range(std::size_t{0}, std::size_t{16}));
  INFO("case " << which);
  REQUIRE(nonsense.size() == 16);
  s.give_all(s.b, nonsense[which]);
  const auto bad_psn = static_cast<std::uint32_t>(kPsnA + nonsense[which].size() - 1);
  CHECK(s.take(s.b) == Packets{s.nak(NakCode::InvalidRequest, bad_psn, 0)});
  CHECK(s.b.qp().state() == QpState::Err);
  CHECK(events_of(s.b) == std::vector{queue::AsyncType::QpReqErr});
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::WrFlushErr), failed(8, WcStatus::WrFlushErr)});
}

TEST_CASE("each NAK code means its status, after all that came before has succeeded", "[rc][nak]") {
  const auto [code, status] = GENERATE(table<NakCode, WcStatus>({{NakCode::InvalidRequest, WcStatus::RemInvReqErr},
                                                                 {NakCode::RemoteAccessError, WcStatus::RemAccessErr},
                                                                 {NakCode::RemoteOperationalError, WcStatus::RemOpErr},
                                                                 {NakCode::InvalidRdRequest, WcStatus::RemInvReqErr}}));
  Script s;
  s.post(SendOpcode::Send, 0, 2000);
  s.post(SendOpcode::Send, 1, 2000);
  s.post(SendOpcode::Send, 2, 2000);
  s.post(SendOpcode::Send, 3, 2000);
  CHECK(s.take(s.a).size() == 8);
  s.give(s.a, s.nak(code, kPsnA + 3, 1));  // the second message's last packet
  const Wcs wcs = s.a.poll_send();
  CHECK(wcs == Wcs{sent_ok(0), failed(1, status), failed(2, WcStatus::WrFlushErr), failed(3, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Err);
}

TEST_CASE("reserved syndromes and NAK codes are not acted upon", "[rc][nak]") {
  Script s;
  s.post(SendOpcode::Send, 1, 10);
  s.take(s.a);
  s.give(s.a, make_ack(s.a.qpn(), kPsnA, {0x40, 0}));
  s.give(s.a, make_ack(s.a.qpn(), kPsnA, {0x7f, 0}));
  CHECK(s.a.poll_send().empty());
  CHECK(s.a.qp().state() == QpState::Rts);
}

TEST_CASE("ERR flushes sends and receives in the order posted, and what is posted after", "[rc][nak]") {
  Script s;
  s.post_recv(7, 10);
  s.post(SendOpcode::Send, 0, 10);
  s.give_all(s.b, s.take(s.a));
  s.give_all(s.a, s.take(s.b));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    queue::Wqe wqe = s.request(SendOpcode::Send, i, 10);
    wqe.signaled = false;  // a failure is always told
    REQUIRE(s.a.post_send(s.now, wqe));
  }
  s.take(s.a);
  for (Side* side : {&s.a, &s.b}) {
    for (std::uint64_t i = 20; i < 23; ++i) REQUIRE(side->post_recv(i, {}));
    REQUIRE(side->to_state(s.now, QpState::Err));
    CHECK(!side->engine().next_deadline());
  }
  CHECK(s.a.poll_send() == Wcs{sent_ok(0), failed(1, WcStatus::WrFlushErr), failed(2, WcStatus::WrFlushErr),
                               failed(3, WcStatus::WrFlushErr)});
  const Wcs flushed{failed(20, WcStatus::WrFlushErr), failed(21, WcStatus::WrFlushErr),
                    failed(22, WcStatus::WrFlushErr)};
  CHECK(s.a.poll_recv() == flushed);
  Wcs at_b = flushed;
  at_b.insert(at_b.begin(), received(7, 10));
  CHECK(s.b.poll_recv() == at_b);

  s.post(SendOpcode::Send, 4, 10);
  REQUIRE(s.a.post_recv(23, {}));
  CHECK(s.a.poll_send() == Wcs{failed(4, WcStatus::WrFlushErr)});
  CHECK(s.a.poll_recv() == Wcs{failed(23, WcStatus::WrFlushErr)});
  CHECK(s.take(s.a).empty());
}

TEST_CASE("a half-arrived message gives its receive back with the flush, before the others", "[rc][nak]") {
  Script s;
  s.post_recv(7, 4000);
  s.post_recv(8, 4000);
  s.post(SendOpcode::Send, 1, 3000);
  s.give(s.b, s.take(s.a)[0]);
  REQUIRE(s.b.to_state(s.now, QpState::Err));
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::WrFlushErr), failed(8, WcStatus::WrFlushErr)});
}

TEST_CASE("a queue pair that went through RESET starts afresh", "[rc][nak]") {
  Script s;
  s.post_recv(7, 4000);
  s.post(SendOpcode::Send, 1, 3000);
  s.give(s.b, s.take(s.a)[0]);
  for (Side* side : {&s.a, &s.b}) REQUIRE(side->to_state(s.now, QpState::Reset));
  CHECK(s.a.poll_send().empty());
  CHECK(s.b.poll_recv().empty());
  CHECK(!s.a.engine().next_deadline());
  s.a.connect(s.now, s.b, {}, 0x500, 0x600);
  s.b.connect(s.now, s.a, {}, 0x600, 0x500);
  s.post_recv(8, 100);
  s.post(SendOpcode::Send, 2, 100);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(2)});
  CHECK(s.b.poll_recv() == Wcs{received(8, 100)});
}

TEST_CASE("a queue pair that failed works again after RESET", "[rc][nak]") {
  Script s;
  queue::Wqe wqe = s.request(SendOpcode::Write, 1, 100);
  wqe.rkey = queue::RKey(wqe.rkey.value() ^ 0x100);
  REQUIRE(s.a.post_send(s.now, wqe));
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RemAccessErr)});
  for (Side* side : {&s.a, &s.b}) REQUIRE(side->to_state(s.now, QpState::Reset));
  s.b.connect(s.now, s.a, {}, 0x600, 0x500);
  s.a.connect(s.now, s.b, {}, 0x500, 0x600);
  s.take(s.a);
  CHECK(s.a.qp().state() == QpState::Rts);
  s.post_recv(8, 100);
  s.post(SendOpcode::Send, 2, 100);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(2)});
  CHECK(s.b.poll_recv() == Wcs{received(8, 100)});
}

TEST_CASE("messages of 2^31 bytes may be posted, one byte more may not", "[rc][nak]") {
  Script s;
  // Many entries over the same memory: nothing is read before it is sent.
  const std::vector<queue::Sge> half(2, {s.source.address(), 0x40000000, s.source.lkey()});
  queue::Wqe wqe = s.request(SendOpcode::Send, 1, 0);
  wqe.sges = half;
  CHECK(s.a.post_send(s.now, wqe));
  std::vector<queue::Sge> over = half;
  over.push_back({s.source.address(), 1, s.source.lkey()});
  wqe.sges = over;
  const auto refused = s.a.post_send(s.now, wqe);
  REQUIRE(!refused);
  CHECK(refused.error().errno_value == EINVAL);
}

}  // namespace
}  // namespace nicless::sim
