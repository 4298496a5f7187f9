// SPDX-License-Identifier: MIT
// How far an unreliable transport has come with its send queue: a work request is done when its last packet has left,
// since nobody will acknowledge it. Port-bound.
//
//      retired <= seq < next_seq      handed out, perhaps not sent yet: the memory is not the program's
//      next_seq <= seq < posted       to be sent
#pragma once

#include <cstdint>
#include <optional>

#include "queue/send_queue.h"

namespace nicless::wire {

class Unacknowledged {
 public:
  explicit Unacknowledged(queue::SendQueue& queue) : queue_(queue) {}

  void start();
  std::uint64_t next_seq() const { return next_seq_; }
  // The work request whose turn it is; null when there is none, or the one before it failed.
  const queue::Wqe* next();
  void handed_out() { ++next_seq_; }
  bool is_everything_sent() const { return queue_.retired() >= next_seq_; }  // of what was handed out
  void done_at_once();  // the same for one that has nothing to send
  // The one whose turn it is cannot be sent: it fails once all before it have left. True if that is now.
  bool fail(queue::WcStatus status);
  // All that was handed out has left. True if a work request failed, and with it the send queue.
  bool on_sent();

 private:
  queue::SendQueue& queue_;
  std::uint64_t next_seq_ = 0;
  std::optional<queue::WcStatus> failure_;
};

}  // namespace nicless::wire
