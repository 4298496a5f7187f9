// SPDX-License-Identifier: MIT
#include "wire/rc/tail_probe.h"

#include <algorithm>

namespace nicless::wire {

namespace {

constexpr std::uint16_t kBackoffMax = 16;

}  // namespace

void TailProbe::on_sent(queue::Instant now, std::uint64_t end_psn, bool wants_ack) {
  if (wants_ack && !sample_psn_) {
    sample_psn_ = end_psn;
    sample_sent_at_ = now;
  }
  if (unanswered_ < kFlightUnmeasured) ++unanswered_;
  arm(now);
}

void TailProbe::on_progress(queue::Instant now, std::uint64_t acked_psn, bool is_anything_unacknowledged) {
  if (sample_psn_ && acked_psn >= *sample_psn_) {
    measure(now - sample_sent_at_);
    sample_psn_.reset();
  }
  backoff_ = 0;
  forget_unless_flight();
  deadline_.reset();
  if (is_anything_unacknowledged) arm(now);
}

void TailProbe::on_probe(queue::Instant now) {
  if (backoff_ < kBackoffMax) ++backoff_;
  on_resend();
  arm(now);
}

void TailProbe::measure(queue::Duration round_trip) {
  if (!round_trip_) {
    round_trip_ = shortest_ = round_trip;
    deviation_ = round_trip / 2;
    return;
  }
  const queue::Duration error = round_trip > *round_trip_ ? round_trip - *round_trip_ : *round_trip_ - round_trip;
  deviation_ += (error - deviation_) / 4;
  *round_trip_ += (round_trip - *round_trip_) / 8;
  shortest_ = std::min(shortest_, round_trip);
  // Neither the last one alone, which a queue that has just run empty makes short, nor the mean, which comes late.
  is_delayed_ = std::max(round_trip, *round_trip_) > shortest_ + shortest_ / 2;
}

void TailProbe::arm(queue::Instant now) {
  if (!round_trip_ && unanswered_ < kFlightUnmeasured) return;
  const queue::Duration silence =
      round_trip_ ? std::max(kSilenceMin, 2 * *round_trip_ + 4 * deviation_) : kSilenceUnmeasured;
  deadline_ = now + silence * (std::int64_t{1} << backoff_);
}

}  // namespace nicless::wire
