// SPDX-License-Identifier: MIT
// Goal: what a program sees of a CQ: order, every member of ibv_wc, arming, overrun, resize, and what is left when a
// queue goes away. Method: push values, then compare all that can be polled and all events.
#include "queue/completion_queue.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

const Wc kFirst{.wr_id = 1};
const Wc kSecond{.wr_id = 2};

TEST_CASE("completions are polled in the order pushed, as many as fit", "[queue][cq]") {
  CqFixture f;
  for (std::uint64_t i = 1; i <= 5; ++i) f.cq.push({.wr_id = i});
  std::array<ibv_wc, 2> two;
  CHECK(f.cq.poll(two) == 2);
  CHECK(two[0].wr_id == 1);
  CHECK(two[1].wr_id == 2);
  CHECK(f.cq.poll({}) == 0);
  CHECK_FALSE(f.cq.empty());
  CHECK(f.poll_all() == std::vector<Wc>{{.wr_id = 3}, {.wr_id = 4}, {.wr_id = 5}});
  CHECK(f.cq.empty());
  CHECK(f.cq.poll(two) == 0);
}

TEST_CASE("polling writes every member of ibv_wc", "[queue][cq]") {
  CqFixture f;
  f.cq.push({.wr_id = 0x1122334455667788,
             .status = WcStatus::RemOpErr,
             .opcode = WcOpcode::RecvRdmaWithImm,
             .flags = kWcGrh | kWcWithImm,
             .byte_len = 4096,
             .imm_or_key = 0xdeadbeef,
             .vendor_err = 7,
             .qp_num = Qpn{0x123456},
             .src_qp = Qpn{0x654321}});
  ibv_wc wc;
  std::memset(&wc, 0xa5, sizeof(wc));
  REQUIRE(f.cq.poll({&wc, 1}) == 1);
  CHECK(wc.wr_id == 0x1122334455667788);
  CHECK(wc.status == IBV_WC_REM_OP_ERR);
  CHECK(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(wc.vendor_err == 7);
  CHECK(wc.byte_len == 4096);
  CHECK(wc.imm_data == 0xdeadbeef);
  CHECK(wc.invalidated_rkey == 0xdeadbeef);
  CHECK(wc.qp_num == 0x123456);
  CHECK(wc.src_qp == 0x654321);
  CHECK(wc.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM));
  CHECK(wc.pkey_index == 0);
  CHECK(wc.slid == 0);
  CHECK(wc.sl == 0);
  CHECK(wc.dlid_path_bits == 0);
}

TEST_CASE("polling gives back the room of all that a completion covers", "[queue][cq]") {
  CqFixture f;
  Credit credit;
  f.cq.push({.wr_id = 1, .credit = &credit, .credit_count = 3});
  f.cq.push({.wr_id = 2, .credit = &credit, .credit_count = 4});
  CHECK(credit.released() == 0);
  ibv_wc wc;
  REQUIRE(f.cq.poll({&wc, 1}) == 1);
  CHECK(credit.released() == 3);
  REQUIRE(f.cq.poll({&wc, 1}) == 1);
  CHECK(credit.released() == 7);
}

TEST_CASE("an armed CQ raises one event, for what comes after the arming", "[queue][cq]") {
  CqFixture f;
  f.cq.push({.wr_id = 1});
  f.cq.arm(false);
  CHECK_FALSE(f.channel.take());
  f.cq.push({.wr_id = 2});
  f.cq.push({.wr_id = 3});
  CHECK(f.channel.take() == CompletionEvent{.handle = &f});
  CHECK_FALSE(f.channel.take());
}

TEST_CASE("a CQ armed for solicited events is woken by those and by errors only", "[queue][cq]") {
  CqFixture f;
  f.cq.arm(true);
  f.cq.push({.wr_id = 1});
  CHECK_FALSE(f.channel.take());
  SECTION("solicited") {
    f.cq.push({.wr_id = 2, .solicited = true});
  }
  SECTION("in error") {
    f.cq.push({.wr_id = 2, .status = WcStatus::WrFlushErr});
  }
  CHECK(f.channel.take());
  f.cq.push({.wr_id = 3, .solicited = true});
  CHECK_FALSE(f.channel.take());
}

TEST_CASE("arming for all overrides arming for solicited, in either order", "[queue][cq]") {
  CqFixture f;
  const bool solicited_first = GENERATE(true, false);
  f.cq.arm(solicited_first);
  f.cq.arm(!solicited_first);
  f.cq.push({.wr_id = 1});
  CHECK(f.channel.take());
}

TEST_CASE("a CQ without a channel may be armed", "[queue][cq]") {
  AsyncEvents async_events(open_event_fd().value());
  CompletionQueue cq(4, nullptr, async_events, nullptr);
  cq.arm(false);
  cq.push({.wr_id = 1});
  CHECK_FALSE(cq.empty());
}

TEST_CASE("a full CQ that ignores overruns loses its oldest completion, and gives its room back", "[queue][cq]") {
  CqFixture f(2, {.ignores_overrun = true});
  Credit credit;
  for (std::uint64_t i = 1; i <= 5; ++i) f.cq.push({.wr_id = i, .credit = &credit, .credit_count = 1});
  CHECK_FALSE(f.async_events.take());
  CHECK_FALSE(f.cq.is_overrun());
  CHECK(credit.released() == 3);
  CHECK(f.poll_all() == std::vector<Wc>{{.wr_id = 4}, {.wr_id = 5}});
  CHECK(credit.released() == 5);
}

TEST_CASE("a CQ with a clock stamps each completion as it is made, one without does not", "[queue][cq]") {
  static std::uint64_t time;
  time = 100;
  CqFixture f(64, {.clock = [] { return time; }});
  f.cq.push({.wr_id = 1});
  time = 250;
  f.cq.push({.wr_id = 2});
  time = 999;
  Completion completion;
  REQUIRE(f.cq.poll(completion) == 1);
  CHECK(completion.stamp == 100);
  REQUIRE(f.cq.poll(completion) == 1);
  CHECK(completion.stamp == 250);

  CqFixture without;
  without.cq.push({.wr_id = 1});
  REQUIRE(without.cq.poll(completion) == 1);
  CHECK(completion.stamp == 0);
}

TEST_CASE("one completion can be polled as it was made, and gives its room back", "[queue][cq]") {
  CqFixture f(1);
  Credit credit;
  Completion completion;
  CHECK(f.cq.poll(completion) == 0);
  f.cq.push({.wr_id = 7, .src_qp = Qpn{9}, .credit = &credit, .credit_count = 3});
  REQUIRE(f.cq.poll(completion) == 1);
  CHECK(completion.wr_id == 7);
  CHECK(completion.src_qp == Qpn{9});
  CHECK(credit.released() == 3);
  f.cq.push({.wr_id = 8});
  f.cq.push({.wr_id = 9});
  CHECK(f.cq.poll(completion) == -1);
  CHECK(f.cq.is_overrun());
}

struct Moderated : CqFixture {
  Moderated() {
    time = Instant{};
    wakes = 0;
    cq.moderate({3, std::chrono::microseconds(100), [] { return time; }, [] { ++wakes; }});
  }
  static inline Instant time;
  static inline int wakes;
};

TEST_CASE("a moderated CQ waits with its event for as many completions as it was told", "[queue][cq]") {
  Moderated f;
  f.cq.arm(false);
  f.cq.push({.wr_id = 1});
  f.cq.push({.wr_id = 2});
  CHECK_FALSE(f.channel.take());
  CHECK(f.wakes == 1);
  f.cq.push({.wr_id = 3});
  CHECK(f.channel.take() == CompletionEvent{.handle = &f});
  CHECK(f.cq.raise_if_due(f.time + std::chrono::seconds(1)) == std::nullopt);
  f.cq.push({.wr_id = 4});  // not armed
  CHECK_FALSE(f.channel.take());
}

TEST_CASE("a moderated CQ waits no longer than its period, counted from the first completion", "[queue][cq]") {
  Moderated f;
  f.cq.arm(false);
  f.time += std::chrono::microseconds(50);
  f.cq.push({.wr_id = 1});
  f.time += std::chrono::microseconds(50);
  f.cq.push({.wr_id = 2});
  CHECK(f.cq.raise_if_due(f.time) == Instant{std::chrono::microseconds(150)});
  CHECK_FALSE(f.channel.take());
  CHECK(f.cq.raise_if_due(Instant{std::chrono::microseconds(150)}) == std::nullopt);
  CHECK(f.channel.take() == CompletionEvent{.handle = &f});
}

TEST_CASE("an event that waits is raised when the moderation changes, and none waits without one", "[queue][cq]") {
  Moderated f;
  f.cq.arm(false);
  f.cq.push({.wr_id = 1});
  f.cq.moderate({});
  CHECK(f.channel.take() == CompletionEvent{.handle = &f});
  f.cq.arm(false);
  f.cq.push({.wr_id = 2});
  CHECK(f.channel.take() == CompletionEvent{.handle = &f});
  CHECK(f.wakes == 1);
}

TEST_CASE("an overrun CQ knows whose completions it lost, until they start anew", "[queue][cq]") {
  CqFixture f(1);
  f.cq.push({.wr_id = 1, .qp_num = Qpn{1}});
  CHECK_FALSE(f.cq.has_lost_completion_of(Qpn{1}));
  f.cq.push({.wr_id = 2, .qp_num = Qpn{2}});
  f.cq.push({.wr_id = 3, .qp_num = Qpn{3}});
  CHECK_FALSE(f.cq.has_lost_completion_of(Qpn{1}));
  CHECK(f.cq.has_lost_completion_of(Qpn{2}));
  CHECK(f.cq.has_lost_completion_of(Qpn{3}));
  f.cq.forget_lost_completions_of(Qpn{2});
  f.cq.purge(Qpn{3});
  CHECK_FALSE(f.cq.has_lost_completion_of(Qpn{2}));
  CHECK_FALSE(f.cq.has_lost_completion_of(Qpn{3}));
}

TEST_CASE("an overrun CQ says so once and never works again", "[queue][cq]") {
  CqFixture f(2);
  for (std::uint64_t i = 1; i <= 4; ++i) f.cq.push({.wr_id = i});
  ibv_wc wc;
  CHECK(f.cq.poll({&wc, 1}) == -1);
  f.cq.push({.wr_id = 5});
  CHECK(f.cq.poll({&wc, 1}) == -1);
  CHECK(f.async_events.take() == AsyncEvent{.type = AsyncType::CqErr, .handle = &f});
  CHECK_FALSE(f.async_events.take());
}

TEST_CASE("a CQ takes exactly as many completions as it was made for", "[queue][cq]") {
  CqFixture f(100);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 100; ++i) f.cq.push({.wr_id = i});
    CHECK(f.poll_all().size() == 100);
  }
  CHECK_FALSE(f.async_events.take());
}

TEST_CASE("resizing keeps what waits and refuses to lose it", "[queue][cq]") {
  CqFixture f(4);
  f.cq.push({.wr_id = 1});
  f.cq.push({.wr_id = 2});
  CHECK(errno_of(f.cq.resize(1)) == EINVAL);
  CHECK(errno_of(f.cq.resize(0)) == EINVAL);
  CHECK(errno_of(f.cq.resize(kCqeMax + 1)) == EINVAL);
  CHECK(f.cq.capacity() == 4);
  CHECK(f.cq.resize(2).has_value());
  CHECK(f.cq.capacity() == 2);
  CHECK(f.cq.resize(kCqeMax).has_value());
  CHECK(f.poll_all() == std::vector{kFirst, kSecond});
}

TEST_CASE("purging by credit removes one queue's completions and gives no room back", "[queue][cq]") {
  CqFixture f;
  Credit gone, stays;
  f.cq.push({.wr_id = 1, .credit = &stays, .credit_count = 1});
  f.cq.push({.wr_id = 9, .credit = &gone, .credit_count = 1});
  f.cq.push({.wr_id = 2, .credit = &stays, .credit_count = 1});
  f.cq.purge(gone);
  CHECK(gone.released() == 0);
  CHECK(f.poll_all() == std::vector{kFirst, kSecond});
  CHECK(stays.released() == 2);
}

TEST_CASE("purging by queue pair gives a shared receive queue its room back", "[queue][cq]") {
  CqFixture f;
  Credit shared;
  f.cq.push({.wr_id = 9, .qp_num = Qpn{5}, .credit = &shared, .credit_count = 1});
  f.cq.push({.wr_id = 1, .qp_num = Qpn{6}, .credit = &shared, .credit_count = 1});
  f.cq.push({.wr_id = 9, .qp_num = Qpn{5}});
  f.cq.purge(Qpn{5});
  CHECK(shared.released() == 1);
  CHECK(f.poll_all() == std::vector<Wc>{{.wr_id = 1, .qp_num = 6}});
}

TEST_CASE("a destroyed CQ leaves no event behind, and others' events alone", "[queue][cq]") {
  AsyncEvents async_events(open_event_fd().value());
  CompletionChannel channel(open_event_fd().value());
  int one = 0, other = 0;
  CompletionQueue stays(1, &channel, async_events, &other);
  {
    CompletionQueue goes(1, &channel, async_events, &one);
    for (CompletionQueue* cq : {&goes, &stays}) {
      cq->arm(false);
      cq->push({.wr_id = 1});
      cq->push({.wr_id = 2});
    }
  }
  CHECK(channel.take() == CompletionEvent{.handle = &other});
  CHECK_FALSE(channel.take());
  CHECK(async_events.take() == AsyncEvent{.type = AsyncType::CqErr, .handle = &other});
  CHECK_FALSE(async_events.take());
}

}  // namespace
}  // namespace nicless::queue
