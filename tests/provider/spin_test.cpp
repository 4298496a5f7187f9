// SPDX-License-Identifier: MIT
// Goal: a thread that polls in vain spins, then yields, then sleeps, and learns from what came when it gave way.
// Method: the value alone, in virtual time.
#include "provider/spin.h"

#include <catch2/catch.hpp>

using namespace nicless;
using nicless::provider::Spin;
using std::chrono::microseconds;

namespace {

constexpr queue::Duration kPoll = std::chrono::nanoseconds(500);

// Polls in vain until it has to wait otherwise than by spinning.
struct Poller {
  Spin spin;
  queue::Instant now{std::chrono::seconds(1)};

  Spin::Wait poll_until_it_gives_way() {
    Spin::Wait wait = Spin::Wait::None;
    while (wait == Spin::Wait::None) {
      now += kPoll;
      wait = spin.on_empty(now);
    }
    return wait;
  }
  void yielded(queue::Duration takes) {
    spin.on_yielded(now, now + takes);
    now += takes;
  }
  void slept(queue::Duration takes, bool has_datagram, queue::Duration held_up = {}) {
    now += takes;
    spin.on_slept(now, has_datagram, held_up);
  }
  // Sleeps, and finds the datagram when the other has done with the processor, until the spin is as short as can be.
  void learn_to_give_way() {
    while (spin.limit() > Spin::kSpinMin) {
      if (poll_until_it_gives_way() == Spin::Wait::Yield) {
        yielded(10 * Spin::kYieldToNobody);
      } else {
        slept(microseconds(50), true, 2 * Spin::kHeldUp);
      }
      spin.on_found();
    }
  }
  queue::Duration time_until_it_gives_way() {
    const queue::Instant from = now;
    poll_until_it_gives_way();
    return now - from;
  }
};

}  // namespace

TEST_CASE("a wait begins with the longest spin, goes on with yields and ends in sleeps", "[spin]") {
  Poller p;
  const queue::Instant from = p.now;
  CHECK(p.poll_until_it_gives_way() == Spin::Wait::Yield);
  CHECK(p.now - from > Spin::kSpinMax);
  while (p.poll_until_it_gives_way() == Spin::Wait::Yield) p.yielded(kPoll);
  CHECK(p.now - from > Spin::kYieldMax);
  CHECK(p.spin.limit() == Spin::kSpinMax);
  p.slept(microseconds(60), false);
  CHECK(p.poll_until_it_gives_way() == Spin::Wait::Sleep);
}

TEST_CASE("who found a datagram after giving way to another gives way sooner, down to a single look", "[spin]") {
  Poller p;
  p.learn_to_give_way();
  CHECK_FALSE(p.spin.can_learn());
  CHECK(p.time_until_it_gives_way() <= Spin::kSpinMin + 2 * kPoll);
}

TEST_CASE("a yield in which nobody had the processor teaches nothing", "[spin]") {
  Poller p;
  CHECK(p.poll_until_it_gives_way() == Spin::Wait::Yield);
  p.yielded(Spin::kYieldToNobody);
  p.spin.on_found();
  CHECK(p.spin.limit() == Spin::kSpinMax);
}

TEST_CASE("a sleep in which nobody had the processor teaches nothing, one in vain makes the spin longer", "[spin]") {
  Poller p;
  while (p.poll_until_it_gives_way() == Spin::Wait::Yield) p.yielded(kPoll);
  p.slept(microseconds(5), true, Spin::kHeldUp);
  p.spin.on_found();
  CHECK(p.spin.limit() == Spin::kSpinMax);

  p.learn_to_give_way();
  p.poll_until_it_gives_way();
  p.slept(microseconds(60), false, 2 * Spin::kHeldUp);
  CHECK(p.spin.limit() == 2 * Spin::kSpinMin);
}

TEST_CASE("now and then it spins for long, and what comes meanwhile makes that the rule again", "[spin]") {
  Poller p;
  p.learn_to_give_way();
  std::uint32_t waits = 0;
  while (p.time_until_it_gives_way() < Spin::kSpinMax) {
    p.slept(microseconds(5), true);
    p.spin.on_found();
    REQUIRE(++waits <= Spin::kProbeEach);
  }
  p.slept(microseconds(5), true);  // the probe found nothing: they still share a processor
  p.spin.on_found();
  CHECK(p.spin.limit() == Spin::kSpinMin);

  waits = 0;
  while (p.spin.limit() == Spin::kSpinMin) {
    // Something comes after five microseconds of spinning, if it spins for so long.
    Spin::Wait wait = Spin::Wait::None;
    for (int i = 0; i < 10 && wait == Spin::Wait::None; ++i) {
      p.now += kPoll;
      wait = p.spin.on_empty(p.now);
    }
    if (wait != Spin::Wait::None) p.slept(microseconds(5), true);
    p.spin.on_found();
    REQUIRE(++waits <= Spin::kProbeEach);
  }
  CHECK(p.spin.limit() == Spin::kSpinMax);
}

TEST_CASE("a thread that does other work between polls is not spinning", "[spin]") {
  Poller p;
  for (int i = 0; i < 100; ++i) {
    CHECK(p.spin.on_empty(p.now) == Spin::Wait::None);
    p.now += Spin::kSpinMax + kPoll;
  }
}
