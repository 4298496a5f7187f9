// SPDX-License-Identifier: MIT
// How many bytes a requester keeps in flight: the part of reliability that RoCE leaves to a lossless fabric and UDP
// does not have. Grows by what is acknowledged. On a loss sending starts over with a few packets and a limit of half:
// what was in flight behind the lost packet still fills the peer's socket buffer, and a full window on top of it would
// be dropped whole. Port-bound.
//
// A default socket buffer holds 212,992 bytes of truesize, about 90 kB of small packets and 100 kB of those of 1 KiB,
// so a flow starts below that; a window of twice as much loses packets on a network that loses none (goodput.snap).
#pragma once

#include <algorithm>
#include <cstdint>

namespace nicless::wire {

class Window {
 public:
  static constexpr std::uint32_t kStartBytes = 64 * 1024;
  static constexpr std::uint32_t kMaxBytes = 128 * 1024;
  static constexpr std::uint32_t kMinPackets = 4;

  explicit Window(std::uint32_t mtu_bytes = 1024) : mtu_bytes_(mtu_bytes), bytes_(kStartBytes) {}

  std::uint32_t packets() const { return std::max(kMinPackets, bytes_ / mtu_bytes_); }
  // A message longer than the window is acknowledged on its way, this often.
  std::uint32_t packets_between_ack_requests() const { return std::max(2u, packets() / 4); }

  // So many packets more have arrived. Doubles with each window up to the limit of the last loss, then one packet more
  // per window.
  void on_acknowledged(std::uint64_t packets);
  // A packet was lost; sent_psn is the first not sent yet: losses among what is in flight now halve the limit once.
  void on_loss(std::uint64_t acked_psn, std::uint64_t sent_psn);
  void on_timeout();

 private:
  std::uint32_t mtu_bytes_;
  std::uint32_t bytes_;
  std::uint32_t threshold_bytes_ = kMaxBytes;
  std::uint32_t credit_bytes_ = 0;      // acknowledged towards the next packet of growth
  std::uint64_t recovery_end_psn_ = 0;  // a loss before this belongs to a flight that was halved already
};

}  // namespace nicless::wire
