// SPDX-License-Identifier: MIT
// When a requester tries again, and how often: plain data holding deadlines and two budgets. IBTA 9.7.5.2.8 (RNR NAK),
// 9.9.2.1.1 (ack timeout). Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "queue/types.h"

namespace nicless::wire {

inline constexpr std::uint8_t kRnrRetryForever = 7;

// What an RNR NAK's five-bit timer code means, IBTA table 45: 0 is the longest (655.36 ms).
queue::Duration rnr_delay(std::uint8_t code);

// 4.096 us * 2^code; nothing for code 0, which waits for ever.
std::optional<queue::Duration> ack_timeout(std::uint8_t code);

class Retry {
 public:
  struct Limits {
    std::uint8_t timeout_code = 0;
    std::uint8_t retry_count = 0;
    std::uint8_t rnr_retry = 0;
  };

  void set_limits(Limits limits);  // and both budgets whole
  const Limits& limits() const { return limits_; }

  // Something new was acknowledged: both budgets are whole again, the timer starts over while anything is
  // unacknowledged.
  void on_progress(queue::Instant now, bool is_anything_unacknowledged);
  // A packet went out that wants an answer: arms the timer unless it runs.
  void on_sent(queue::Instant now);

  // Spends one try; false when the budget is spent.
  bool spend_retry();
  bool spend_rnr_retry();

  void wait_for_receiver(queue::Instant now, std::uint8_t rnr_code);
  bool is_waiting_for_receiver() const { return rnr_until_.has_value(); }
  bool rnr_wait_is_over(queue::Instant now) const { return rnr_until_ && *rnr_until_ <= now; }
  void end_rnr_wait() { rnr_until_.reset(); }

  bool has_timed_out(queue::Instant now) const { return ack_deadline_ && *ack_deadline_ <= now; }
  void disarm() { ack_deadline_.reset(); }
  std::optional<queue::Instant> next_deadline() const { return queue::earliest(ack_deadline_, rnr_until_); }

 private:
  void arm(queue::Instant now);

  Limits limits_;
  std::uint8_t retries_left_ = 0;
  std::uint8_t rnr_retries_left_ = 0;
  std::optional<queue::Instant> ack_deadline_;
  std::optional<queue::Instant> rnr_until_;
};

}  // namespace nicless::wire
