// SPDX-License-Identifier: MIT
// How many bytes the requesters of one port may have in flight, together. What is in flight fills the peer's socket
// buffer, whose size nobody tells; the port's own is the best guess. Those with something in flight have equal shares,
// of what any buffer takes at least: they may have a peer each. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nicless::wire {

class FlightBudget {
 public:
  // A default socket buffer holds 212,992 bytes of truesize, about 90 kB of small packets and 100 kB of those of 1 KiB:
  // twice as much in flight loses packets on a network that loses none (goodput.snap).
  static constexpr std::uint32_t kLeastBytes = 128 * 1024;
  // Raw UDP with 2.8 MB in flight falls out of the second-level cache: 2,900 MiB/s, and 7,100 with 128 to 768 KiB.
  static constexpr std::uint32_t kMostBytes = 1024 * 1024;

  explicit FlightBudget(std::uint32_t bytes = kLeastBytes) : bytes_(bytes) {}
  // For a port whose receive buffer was granted so many bytes of truesize. Measured with ib_send_bw -s 65536 and 8 MiB
  // (twice an rmem_max of 4): 3,500 MiB/s with kLeastBytes, 4,600 with this; ib_write_bw 1,900 and 3,700.
  static std::uint32_t bytes_for(std::size_t socket_buffer_bytes) {
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(socket_buffer_bytes / 8, kLeastBytes, kMostBytes));
  }

  std::uint32_t bytes() const { return bytes_; }
  // What each of those that have something in flight may have of it now.
  std::uint32_t share() const {
    const std::uint32_t takers = takers_.load(std::memory_order_relaxed);
    return takers <= 1 ? bytes_ : std::max(bytes_ / takers, std::min(bytes_, kLeastBytes));
  }

  // Whoever has something in flight is one of those that share, from enter() to leave().
  void enter() { takers_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { takers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  const std::uint32_t bytes_;
  std::atomic<std::uint32_t> takers_{0};
};

}  // namespace nicless::wire
