// SPDX-License-Identifier: MIT
#include "wire/rc/retry.h"

#include <array>

namespace nicless::wire {

queue::Duration rnr_delay(std::uint8_t code) {
  static constexpr std::array<std::uint32_t, 32> kTensOfMicroseconds = {
      65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
      256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
  return std::chrono::microseconds(10) * kTensOfMicroseconds[code & 31];
}

std::optional<queue::Duration> ack_timeout(std::uint8_t code) {
  if (code == 0) return std::nullopt;
  return queue::Duration(std::int64_t{4096} << (code & 31));
}

void Retry::set_limits(Limits limits) {
  limits_ = limits;
  retries_left_ = limits.retry_count;
  rnr_retries_left_ = limits.rnr_retry;
}

void Retry::on_progress(queue::Instant now, bool is_anything_unacknowledged) {
  retries_left_ = limits_.retry_count;
  rnr_retries_left_ = limits_.rnr_retry;
  ack_deadline_.reset();
  if (is_anything_unacknowledged) arm(now);
}

void Retry::on_sent(queue::Instant now) {
  if (!ack_deadline_) arm(now);
}

bool Retry::spend_retry() {
  if (retries_left_ == 0) return false;
  --retries_left_;
  return true;
}

bool Retry::spend_rnr_retry() {
  if (limits_.rnr_retry == kRnrRetryForever) return true;
  if (rnr_retries_left_ == 0) return false;
  --rnr_retries_left_;
  return true;
}

void Retry::wait_for_receiver(queue::Instant now, std::uint8_t rnr_code) {
  rnr_until_ = now + rnr_delay(rnr_code);
  // The peer has answered: the clock starts again with the resend, and lost packets are counted anew. Otherwise a long
  // wait for a receive would use up retry_cnt on any network that loses a packet now and then.
  disarm();
  retries_left_ = limits_.retry_count;
}

void Retry::arm(queue::Instant now) {
  if (const auto timeout = ack_timeout(limits_.timeout_code)) ack_deadline_ = now + *timeout;
}

}  // namespace nicless::wire
