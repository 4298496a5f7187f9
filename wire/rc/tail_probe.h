// SPDX-License-Identifier: MIT
// When a requester asks whether the end of what it sent has arrived. A loss in the middle is reported by what comes
// behind it; of a loss at the end nobody knows before the ack timeout, which programs set to tens of milliseconds and
// more. So after some silence, a few round trips, the last packet goes out once more: the answer to it says what is
// missing. It spends no retry: the ack timeout keeps its meaning. Plain data holding a deadline. Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "queue/types.h"

namespace nicless::wire {

class TailProbe {
 public:
  static constexpr queue::Duration kSilenceMin = std::chrono::microseconds(500);
  // Before a round trip was measured. One packet that nobody answers is a peer that is not there yet, and the ack
  // timeout's; so many at once were dropped together, as when many begin to send to one receiver's socket buffer. A
  // peer that is only farther away than this answers one packet twice.
  static constexpr queue::Duration kSilenceUnmeasured = std::chrono::milliseconds(1);
  static constexpr std::uint32_t kFlightUnmeasured = 12;

  // Packets up to this unwrapped PSN have gone out now; wants_ack: the last of them asks for an answer.
  void on_sent(queue::Instant now, std::uint64_t end_psn, bool wants_ack);
  // So much is answered now.
  void on_progress(queue::Instant now, std::uint64_t acked_psn, bool is_anything_unacknowledged);
  // What goes out next went out before: an answer may be to either, and measures nothing.
  void on_resend() {
    sample_psn_.reset();
    forget_unless_flight();
  }
  void disarm() { deadline_.reset(); }
  // Round trips take clearly longer than the shortest did: something is queued on the way. Before there are two to
  // compare nobody knows, and it may be so.
  bool is_delayed() const { return is_delayed_; }

  bool is_due(queue::Instant now) const { return deadline_ && *deadline_ <= now; }
  void on_probe(queue::Instant now);  // the next one waits twice as long
  // Nothing before a round trip was measured, unless a whole flight stays unanswered.
  std::optional<queue::Instant> next_deadline() const { return deadline_; }

 private:
  void measure(queue::Duration round_trip);
  void arm(queue::Instant now);
  // Of a whole flight it is remembered that it was one.
  void forget_unless_flight() {
    if (unanswered_ < kFlightUnmeasured) unanswered_ = 0;
  }

  // RFC 6298: smoothed round trip, and how far single ones are from it.
  std::optional<queue::Duration> round_trip_;
  queue::Duration deviation_{};
  queue::Duration shortest_{};
  std::optional<std::uint64_t> sample_psn_;  // being measured: answered when acked_psn has reached it
  queue::Instant sample_sent_at_{};
  std::uint32_t unanswered_ = 0;  // datagrams since the last progress or resend, until they are a flight
  std::uint16_t backoff_ = 0;     // probes since the last progress
  bool is_delayed_ = true;
  std::optional<queue::Instant> deadline_;
};

}  // namespace nicless::wire
