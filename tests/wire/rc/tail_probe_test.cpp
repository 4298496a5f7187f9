// SPDX-License-Identifier: MIT
// Goal: a requester asks for the end of what it sent after a few measured round trips of silence, later each time, and
// before it knows one only if a whole flight stays unanswered. Method: a TailProbe alone, its deadline after each call.
#include "wire/rc/tail_probe.h"

#include <catch2/catch.hpp>

namespace nicless::wire {
namespace {

using queue::Duration;
using queue::Instant;
using std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr Duration kMin = TailProbe::kSilenceMin;

constexpr Instant kStart{std::chrono::seconds(1)};

// A probe that has measured one round trip; everything is answered.
TailProbe after_round_trip(Duration round_trip) {
  TailProbe probe;
  probe.on_sent(kStart, 10, true);
  probe.on_progress(kStart + round_trip, 10, false);
  return probe;
}

TEST_CASE("before a round trip was measured nothing is probed", "[rc][probe]") {
  TailProbe probe;
  probe.on_sent(kStart, 10, true);
  CHECK(!probe.next_deadline());
}

TEST_CASE("a whole flight that nobody answers is probed though no round trip was measured", "[rc][probe]") {
  TailProbe probe;
  for (std::uint32_t i = 1; i < TailProbe::kFlightUnmeasured; ++i) probe.on_sent(kStart, i, true);
  CHECK(!probe.next_deadline());
  probe.on_sent(kStart, TailProbe::kFlightUnmeasured, true);
  CHECK(probe.next_deadline() == kStart + TailProbe::kSilenceUnmeasured);
  probe.on_probe(kStart + TailProbe::kSilenceUnmeasured);
  CHECK(probe.next_deadline() == kStart + 3 * TailProbe::kSilenceUnmeasured);
  probe.on_progress(kStart, TailProbe::kFlightUnmeasured, false);
  CHECK(!probe.next_deadline());
  // Nothing was measured by that: what went out twice does not count.
  probe.on_sent(kStart, TailProbe::kFlightUnmeasured + 1, true);
  CHECK(probe.next_deadline() == kStart + TailProbe::kSilenceUnmeasured);
}

TEST_CASE("the silence is a few round trips, and half a millisecond at least", "[rc][probe]") {
  TailProbe near = after_round_trip(microseconds(10));
  near.on_sent(kStart, 11, true);
  CHECK(near.next_deadline() == kStart + kMin);
  TailProbe far = after_round_trip(milliseconds(10));
  far.on_sent(kStart, 11, true);
  CHECK(far.next_deadline() == kStart + milliseconds(40));  // twice, and four times the deviation of half
}

// One more round trip.
void measure(TailProbe& probe, std::uint64_t psn, Duration round_trip) {
  probe.on_sent(kStart, psn, true);
  probe.on_progress(kStart + round_trip, psn, false);
}

TEST_CASE("packets queue on the way when round trips take half as long again as the shortest", "[rc][probe]") {
  CHECK(TailProbe().is_delayed());  // nobody knows
  TailProbe probe = after_round_trip(microseconds(20));
  CHECK(probe.is_delayed());  // nothing to compare with
  measure(probe, 11, microseconds(30));
  CHECK(!probe.is_delayed());
  measure(probe, 12, microseconds(31));
  CHECK(probe.is_delayed());
  measure(probe, 13, microseconds(20));
  CHECK(!probe.is_delayed());
}

TEST_CASE("one short round trip among long ones does not say that nothing queues", "[rc][probe]") {
  TailProbe probe = after_round_trip(microseconds(20));
  for (std::uint64_t psn = 11; psn < 30; ++psn) measure(probe, psn, microseconds(100));
  measure(probe, 30, microseconds(20));
  CHECK(probe.is_delayed());
}

TEST_CASE("each packet and each answer starts the silence anew, the last answer ends it", "[rc][probe]") {
  TailProbe probe = after_round_trip(microseconds(10));
  probe.on_sent(kStart, 11, false);
  probe.on_sent(kStart + microseconds(100), 12, false);
  CHECK(probe.next_deadline() == kStart + microseconds(100) + kMin);
  probe.on_progress(kStart + microseconds(200), 11, true);
  CHECK(probe.next_deadline() == kStart + microseconds(200) + kMin);
  probe.on_progress(kStart + microseconds(200), 12, false);
  CHECK(!probe.next_deadline());
}

TEST_CASE("without progress each probe waits twice as long as the one before", "[rc][probe]") {
  TailProbe probe = after_round_trip(microseconds(10));
  Instant now = kStart;
  probe.on_sent(now, 11, true);
  for (int i = 0; i < 5; ++i) {
    const Duration silence = kMin * (1 << i);
    CHECK(!probe.is_due(now + silence - Duration(1)));
    now += silence;
    CHECK(probe.is_due(now));
    probe.on_probe(now);
  }
  probe.on_progress(now, 11, false);
  probe.on_sent(now, 12, true);
  CHECK(probe.next_deadline() == now + kMin);
}

TEST_CASE("the answer to what was sent twice measures nothing", "[rc][probe]") {
  TailProbe probe;
  probe.on_sent(kStart, 10, true);
  probe.on_resend();
  probe.on_progress(kStart + milliseconds(50), 10, false);
  probe.on_sent(kStart, 11, true);
  CHECK(!probe.next_deadline());
}

TEST_CASE("a packet that asks for no answer measures nothing", "[rc][probe]") {
  TailProbe probe;
  probe.on_sent(kStart, 10, false);
  probe.on_progress(kStart + milliseconds(50), 10, true);
  CHECK(!probe.next_deadline());
}

}  // namespace
}  // namespace nicless::wire
