// SPDX-License-Identifier: MIT
// Goal: the timers and budgets of a reliable connection: ack timeout and retry_cnt, RNR waits and rnr_retry, to the
// nanosecond and to the last try. Method: an ExactPair whose peer stays silent, or answers by hand.
#include <array>
#include <catch2/catch.hpp>

#include "tests/sim/script.h"
#include "wire/rc/retry.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using std::chrono::microseconds;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

TEST_CASE("the ack timeout is 4.096 us times a power of two, and resends from the first unacknowledged",
          "[rc][retry]") {
  const int timeout = GENERATE(1, 8, 14, 18, 31);
  Script s({.timeout = static_cast<std::uint8_t>(timeout)});
  s.post(SendOpcode::Send, 1, 3000);
  s.post(SendOpcode::Send, 2, 10);
  const Packets request = s.take(s.a);
  const auto start = s.now;
  CHECK(s.a.engine().next_deadline() == start + queue::Duration(std::int64_t{4096} << timeout));
  s.give(s.a, s.ack(kPsnA, 0));  // the first packet alone
  s.expire(s.a);
  CHECK(s.take(s.a) == Packets(request.begin() + 1, request.end()));
}

TEST_CASE("an ack timeout of zero waits for ever", "[rc][retry]") {
  Script s({.timeout = 0});
  s.post(SendOpcode::Send, 1, 10);
  CHECK(s.take(s.a).size() == 1);
  CHECK(!s.a.engine().next_deadline());
}

TEST_CASE("a silent peer is tried retry_cnt times more, then RETRY_EXC_ERR and the flush", "[rc][retry]") {
  const int retry_cnt = GENERATE(0, 1, 2, 7);
  Script s({.retry_cnt = static_cast<std::uint8_t>(retry_cnt)});
  REQUIRE(s.a.post_recv(30, {}));
  s.post(SendOpcode::Send, 1, 10);
  s.post(SendOpcode::Send, 2, 10);
  const Packets request = s.take(s.a);
  CHECK(request.size() == 2);
  for (int i = 0; i < retry_cnt; ++i) {
    s.expire(s.a);
    CHECK(s.take(s.a) == request);
    CHECK(s.a.poll_send().empty());
  }
  s.expire(s.a);
  CHECK(s.take(s.a).empty());
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RetryExcErr), failed(2, WcStatus::WrFlushErr)});
  CHECK(s.a.poll_recv() == Wcs{failed(30, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == wire::QpState::Err);
  CHECK(!s.a.engine().next_deadline());
  CHECK(s.a.qp().counters() ==
        wire::QpCounters{.resends = static_cast<std::uint64_t>(retry_cnt), .retries_exceeded = 1});
}

TEST_CASE("a read that is never answered runs out of retries too", "[rc][retry]") {
  Script s({.retry_cnt = 1});
  s.post(SendOpcode::Read, 1, 3000);
  const Packets request = s.take(s.a);
  s.expire(s.a);
  CHECK(s.take(s.a) == request);
  s.expire(s.a);
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RetryExcErr)});
}

TEST_CASE("whatever gets through makes the budget whole again", "[rc][retry]") {
  Script s({.retry_cnt = 1});
  s.post(SendOpcode::Send, 1, 10000);
  std::uint32_t psn = kPsnA;
  for (int i = 0; i < 9; ++i) {
    REQUIRE(!s.take(s.a).empty());
    s.expire(s.a);  // the last try ...
    s.give(s.a, s.ack(psn++, 0));
  }
  CHECK(s.a.qp().state() == wire::QpState::Rts);
  CHECK(s.a.poll_send().empty());
}

TEST_CASE("a lost ACK costs one resend, and everything completes once", "[rc][retry]") {
  Script s;
  s.post_recv(7, 100);
  s.post_recv(8, 100);
  s.post(SendOpcode::Send, 1, 100);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  CHECK(s.take(s.b).size() == 1);  // lost
  s.expire(s.a);
  const Packets again = s.take(s.a);
  CHECK(again == request);
  s.give_all(s.b, again);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
  CHECK(s.b.poll_recv() == Wcs{received(7, 100)});
  CHECK(s.is_at_rest());
}

TEST_CASE("without a receive the answer is RNR, and the sender waits exactly as long as it says", "[rc][retry]") {
  const int code = GENERATE(range(0, 32));
  Script s({.min_rnr_timer = static_cast<std::uint8_t>(code)});
  s.post(SendOpcode::Send, 1, 2000);
  s.post(SendOpcode::Send, 2, 10);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{make_ack(s.a.qpn(), kPsnA, wire::Aeth::rnr(static_cast<std::uint8_t>(code), 0))});
  s.give_all(s.a, answer);
  CHECK(s.take(s.a).empty());
  // IBTA table 45, in hundredths of a millisecond.
  static constexpr std::array<int, 32> kDelays{65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
                                               48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
                                               2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  const auto until = s.now + microseconds(10) * kDelays[static_cast<std::size_t>(code)];
  CHECK(s.a.engine().next_deadline() == until);
  s.now = until - queue::Duration(1);
  s.a.engine().on_deadline(s.now);
  CHECK(s.take(s.a).empty());
  s.post_recv(7, 2000);
  s.post_recv(8, 2000);
  s.expire(s.a);
  CHECK(s.now == until);
  CHECK(s.take(s.a) == request);
  s.give_all(s.b, request);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1), sent_ok(2)});
  CHECK(s.is_at_rest());
  CHECK(s.a.qp().counters() == wire::QpCounters{.rnr_received = 1});
  CHECK(s.b.qp().counters().rnr_sent == 1);
}

TEST_CASE("rnr_retry 0 to 6 is a budget, and it is spent exactly", "[rc][retry]") {
  const int rnr_retry = GENERATE(range(0, 7));
  Script s({.rnr_retry = static_cast<std::uint8_t>(rnr_retry)});
  s.post(SendOpcode::Send, 1, 10);
  s.post(SendOpcode::Send, 2, 10);
  for (int i = 0; i <= rnr_retry; ++i) {
    const Packets request = s.take(s.a);
    REQUIRE(request.size() == 2);
    CHECK(s.a.poll_send().empty());
    s.give_all(s.b, request);
    s.give_all(s.a, s.take(s.b));
    if (i < rnr_retry) s.expire(s.a);
  }
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RnrRetryExcErr), failed(2, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == wire::QpState::Err);
  CHECK(s.b.qp().state() == wire::QpState::Rts);
  CHECK(s.a.qp().counters() ==
        wire::QpCounters{.rnr_received = static_cast<std::uint64_t>(rnr_retry) + 1, .rnr_retries_exceeded = 1});
}

TEST_CASE("rnr_retry 7 never gives up", "[rc][retry]") {
  Script s({.retry_cnt = 0, .rnr_retry = 7});
  s.post(SendOpcode::Send, 1, 10);
  for (int i = 0; i < 300; ++i) {
    s.give_all(s.b, s.take(s.a));
    s.give_all(s.a, s.take(s.b));
    s.expire(s.a);
  }
  s.post_recv(7, 10);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("a write with immediate data that finds no receive repeats its last packet only", "[rc][retry]") {
  Script s;
  s.post(SendOpcode::WriteImm, 1, 3000);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  s.give_all(s.a, s.take(s.b));
  s.post_recv(7, 0);
  s.expire(s.a);
  const Packets again = s.take(s.a);
  CHECK(again == Packets{request[2]});
  s.give_all(s.b, again);
  s.carry_all();
  CHECK(s.b.poll_recv() == Wcs{received_imm(7, 3000, WcOpcode::RecvRdmaWithImm)});
  CHECK(s.arrived(3000));
}

TEST_CASE("a lost RNR NAK is repaired by the ack timeout", "[rc][retry]") {
  Script s;
  s.post(SendOpcode::Send, 1, 10);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.take(s.b).size() == 1);  // lost
  s.expire(s.a);
  s.post_recv(7, 10);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("a read that stalls half-way goes on where it stood", "[rc][retry]") {
  Script s({.path_mtu = 256});
  std::copy_n(s.source.bytes().begin(), 2000, s.target.bytes().begin());
  s.post(SendOpcode::Read, 1, 2000);
  s.give_all(s.b, s.take(s.a));
  const Packets responses = s.take(s.b);
  REQUIRE(responses.size() == 8);
  for (std::size_t i = 0; i < 3; ++i) s.give(s.a, responses[i]);
  s.expire(s.a);
  Packet rest = s.from_a(Op::ReadRequest, kPsnA + 3, true);
  rest.headers.reth = {s.target.address(768), s.target.rkey(), 2000 - 768};
  const Packets again = s.take(s.a);
  REQUIRE(!again.empty());
  CHECK(again[0].headers.bth == rest.headers.bth);
  CHECK(again[0].headers.reth.address == rest.headers.reth.address);
  s.give_all(s.b, again);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{read_ok(1, 2000)});
  CHECK(s.is_at_rest());
}

}  // namespace
}  // namespace nicless::sim
