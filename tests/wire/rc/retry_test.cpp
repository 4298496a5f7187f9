// SPDX-License-Identifier: MIT
// Goal: the timers and budgets of a requester are the IBTA's, to the microsecond and to the try.
// Method: plain data and virtual time.
#include "wire/rc/retry.h"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;
using nicless::queue::Instant;
using nicless::wire::ack_timeout;
using nicless::wire::Retry;
using nicless::wire::rnr_delay;

namespace {
constexpr Instant kStart{1s};
}

TEST_CASE("RNR timer codes are those of IBTA table 45: 0 is the longest", "[rc][retry]") {
  CHECK(rnr_delay(0) == 655360us);
  CHECK(rnr_delay(1) == 10us);
  CHECK(rnr_delay(12) == 640us);
  CHECK(rnr_delay(14) == 1280us);
  CHECK(rnr_delay(31) == 491520us);
}

TEST_CASE("an ack timeout is 4.096 us times two to the code, and code 0 never times out", "[rc][retry]") {
  CHECK_FALSE(ack_timeout(0).has_value());
  CHECK(ack_timeout(1) == 8192ns);
  CHECK(ack_timeout(14) == 67108864ns);
  CHECK(ack_timeout(31) == std::chrono::nanoseconds(4096LL << 31));
}

TEST_CASE("the timer runs from the first unanswered packet, not from the last", "[rc][retry]") {
  Retry retry;
  retry.set_limits({.timeout_code = 14, .retry_count = 2, .rnr_retry = 0});
  retry.on_sent(kStart);
  retry.on_sent(kStart + 10ms);
  CHECK(retry.next_deadline() == kStart + 67108864ns);
  CHECK_FALSE(retry.has_timed_out(kStart + 67ms));
  CHECK(retry.has_timed_out(kStart + 68ms));
}

TEST_CASE("progress starts the timer over, and stops it when nothing is unacknowledged", "[rc][retry]") {
  Retry retry;
  retry.set_limits({.timeout_code = 14, .retry_count = 2, .rnr_retry = 0});
  retry.on_sent(kStart);
  retry.on_progress(kStart + 5ms, true);
  CHECK(retry.next_deadline() == kStart + 5ms + 67108864ns);
  retry.on_progress(kStart + 6ms, false);
  CHECK_FALSE(retry.next_deadline().has_value());
}

TEST_CASE("a budget of n allows n tries, and progress makes it whole", "[rc][retry]") {
  Retry retry;
  retry.set_limits({.timeout_code = 14, .retry_count = 2, .rnr_retry = 1});
  CHECK(retry.spend_retry());
  CHECK(retry.spend_retry());
  CHECK_FALSE(retry.spend_retry());
  CHECK(retry.spend_rnr_retry());
  CHECK_FALSE(retry.spend_rnr_retry());
  retry.on_progress(kStart, false);
  CHECK(retry.spend_retry());
  CHECK(retry.spend_rnr_retry());
}

TEST_CASE("an RNR retry count of 7 never runs out", "[rc][retry]") {
  Retry retry;
  retry.set_limits({.timeout_code = 14, .retry_count = 0, .rnr_retry = 7});
  for (int i = 0; i < 1000; ++i) CHECK(retry.spend_rnr_retry());
}

TEST_CASE("a wait for the receiver replaces the ack timer", "[rc][retry]") {
  Retry retry;
  retry.set_limits({.timeout_code = 8, .retry_count = 7, .rnr_retry = 7});
  retry.on_sent(kStart);
  retry.wait_for_receiver(kStart, 0);
  CHECK(retry.next_deadline() == kStart + 655360us);
  CHECK_FALSE(retry.rnr_wait_is_over(kStart + 655359us));
  CHECK(retry.rnr_wait_is_over(kStart + 655360us));
  retry.end_rnr_wait();
  CHECK_FALSE(retry.next_deadline().has_value());
}
