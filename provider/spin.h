// SPDX-License-Identifier: MIT
// How a thread waits that polls and finds nothing: it spins for a while, then lets others have the processor, as its
// peer may be one of them. Where there are processors for both, each of these steps costs more than it gives, so
// the time before them is long. Where the two share one, everything before them is lost: a thread that finds its
// datagram after somebody else had its processor gives way sooner the next time, down to a single look.
//
// sched_yield(2) gives way only to threads of the same scheduling group, and each session (terminal, service, CI step)
// may be one of its own; a short sleep on the socket gives way to all, at the price of a wake-up.
//
// Thread-compatible: one for each thread. Takes times, reads no clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "queue/types.h"

namespace nicless::provider {

class Spin {
 public:
  static constexpr queue::Duration kSpinMax = std::chrono::microseconds(50);
  static constexpr queue::Duration kSpinMin = std::chrono::microseconds(1);
  // From the first empty poll on: with the longest spin, it yields for so long before it sleeps.
  static constexpr queue::Duration kYieldMax = std::chrono::milliseconds(1);
  // A yield in which somebody else had the processor takes longer than this.
  static constexpr queue::Duration kYieldToNobody = std::chrono::nanoseconds(1500);
  // A thread that was ready to run for so long while it slept has been held up by who had its processor meanwhile.
  static constexpr queue::Duration kHeldUp = std::chrono::microseconds(3);
  // Each so many-th wait spins for the longest time again, to see whether there are two processors by now.
  static constexpr std::uint32_t kProbeEach = 32;

  enum class Wait { None, Yield, Sleep };

  // A poll has found nothing: how to wait before it returns.
  Wait on_empty(queue::Instant now) {
    // A thread that does other work between polls is not spinning.
    if (!is_spinning() || now - last_ > kSpinMax) begin(now);
    last_ = now;
    has_given_way_ = false;
    const queue::Duration spun = now - since_;
    if (spun <= (is_probe_ ? kSpinMax : limit_)) return Wait::None;
    return limit_ == kSpinMax && spun <= kYieldMax ? Wait::Yield : Wait::Sleep;
  }

  void on_yielded(queue::Instant from, queue::Instant until) {
    last_ = until;
    has_given_way_ = until - from > kYieldToNobody;
    is_probe_ = false;
  }
  // held_up: for how long of it the thread could have run.
  void on_slept(queue::Instant until, bool has_datagram, queue::Duration held_up) {
    last_ = until;
    is_probe_ = false;
    has_given_way_ = has_datagram && held_up > kHeldUp;
    if (!has_datagram) limit_ = std::min(2 * limit_, kSpinMax);
  }

  // A poll has found something.
  void on_found() {
    if (has_given_way_) limit_ = std::max(limit_ / 2, kSpinMin);
    if (is_spinning() && is_probe_) limit_ = kSpinMax;
    has_given_way_ = false;
    is_probe_ = false;
    since_ = {};
  }

  bool is_spinning() const { return since_ != queue::Instant{}; }
  bool can_learn() const { return limit_ > kSpinMin; }
  queue::Duration limit() const { return limit_; }

 private:
  void begin(queue::Instant now) {
    since_ = now;
    is_probe_ = limit_ < kSpinMax && ++waits_ % kProbeEach == 0;
  }

  queue::Instant since_;  // the first empty poll of a row; zero: none
  queue::Instant last_;
  queue::Duration limit_ = kSpinMax;
  std::uint32_t waits_ = 0;
  bool is_probe_ = false;
  bool has_given_way_ = false;  // and whoever had the processor may have sent something
};

}  // namespace nicless::provider
