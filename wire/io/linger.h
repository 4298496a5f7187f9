// SPDX-License-Identifier: MIT
// Whether the progress thread stays awake for a while after it has served a datagram. Programs answer at once, peers
// send in bursts, and to be woken costs more than all the rest of a message: tens of microseconds where the processor
// is a virtual one that has gone to sleep meanwhile. A poller that is about to leave its port to that thread does the
// same (provider/poll.cpp), for a shorter time.
//
// It does so as long as it pays. Where several times in a row nothing came it sleeps at once, and only now and then
// looks whether that has changed: traffic is sparse, or the peer needs the very processor that the thread would keep.
//
// A value that takes times and reads no clock. The thread's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "queue/types.h"

namespace nicless::wire {

class Linger {
 public:
  static constexpr queue::Duration kFor = std::chrono::microseconds(50);
  static constexpr std::uint32_t kVainMax = 4;
  static constexpr std::uint32_t kProbeEach = 64;

  explicit Linger(queue::Duration span = kFor) : span_(span) {}

  // Something was received, just before `now`.
  void on_served(queue::Instant now) {
    on_found();
    if (vain_ < kVainMax || ++skipped_ % kProbeEach == 0) until_ = now + span_;
  }
  // What it waits for is there: it need not stay.
  void on_found() {
    if (until_) vain_ = 0;
    until_.reset();
  }
  // Nothing waits: whether to look again.
  bool on_nothing(queue::Instant now) {
    if (!until_) return false;
    if (now < *until_) return true;
    until_.reset();
    if (vain_ < kVainMax) ++vain_;
    return false;
  }
  bool is_on() const { return until_.has_value(); }

 private:
  queue::Duration span_;
  std::optional<queue::Instant> until_;
  std::uint32_t vain_ = 0;
  std::uint32_t skipped_ = 0;
};

}  // namespace nicless::wire
