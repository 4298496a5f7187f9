// SPDX-License-Identifier: MIT
// Whether the program answers each message at once, so that an acknowledgement may wait for the answer and leave with
// it. One who has answered several in a row is taken to answer the next; one who did not has to show it anew. Sans-IO:
// time is an argument. Port-bound.
#pragma once

#include <cstdint>

#include "queue/types.h"

namespace nicless::wire {

class Conversation {
 public:
  static constexpr std::uint32_t kAnswersMin = 16;
  static constexpr queue::Duration kPrompt = std::chrono::microseconds(20);

  // A message was delivered and its acknowledgement is owed; whether an answer to it is expected within kPrompt.
  bool on_message(queue::Instant now) {
    message_at_ = now;
    return answers_ >= kAnswersMin;
  }
  // What the program did next: it posted a request, or anything else.
  void on_request(queue::Instant now) {
    if (!is_waiting()) return;
    answers_ = now - message_at_ <= kPrompt ? answers_ + 1 : 0;
    message_at_ = {};
  }
  void on_other() {
    if (is_waiting()) answers_ = 0;
    message_at_ = {};
  }

 private:
  bool is_waiting() const { return message_at_ != queue::Instant{}; }

  queue::Instant message_at_{};  // zero: none that waits for an answer
  std::uint32_t answers_ = 0;    // prompt ones in a row
};

}  // namespace nicless::wire
