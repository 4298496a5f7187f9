// SPDX-License-Identifier: MIT
// Whether the program that polls a port is one that goes away: it polls until it has its completion, and then looks at
// memory that its peer writes, or computes. What arrives meanwhile has to be served by the progress thread at once,
// which costs a system call at each end of an absence: nothing for a program that polls all the time to pay.
//
// A value, without time or threads: its holder tells it what happened.
#pragma once

#include <algorithm>
#include <cstdint>

namespace nicless::wire {

class PollerHabit {
 public:
  // So many times has the thread to come late before a program counts as one that goes away.
  static constexpr std::uint32_t kSignsNeeded = 2;
  // After so many absences in a row in which nothing arrived it does not any more, and has to give more signs. Many, as
  // an absence costs little, and in a ping-pong of writes every other one is in vain: the poller itself has received
  // the next write together with its acknowledgement.
  static constexpr std::uint32_t kVainMax = 64;
  static constexpr std::uint32_t kSignsNeededMax = 64;

  bool goes_away() const { return goes_away_; }

  // The thread took the port back from a poller that had not been seen for long, and found datagrams waiting.
  void on_found_waiting() {
    if (goes_away_ || ++signs_ < signs_needed_) return;
    goes_away_ = true;
    vain_ = 0;
  }

  // A poller that had left the port to the thread is back; has_received: the thread received something for it.
  void on_return(bool has_received) {
    if (has_received) {
      vain_ = 0;
      signs_needed_ = kSignsNeeded;
    } else if (++vain_ == kVainMax) {
      goes_away_ = false;
      signs_ = 0;
      signs_needed_ = std::min(2 * signs_needed_, kSignsNeededMax);
    }
  }

 private:
  bool goes_away_ = false;
  std::uint32_t signs_ = 0;
  std::uint32_t signs_needed_ = kSignsNeeded;
  std::uint32_t vain_ = 0;
};

}  // namespace nicless::wire
