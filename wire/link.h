// SPDX-License-Identifier: MIT
// One direction of a network as a value: what goes in comes out later, or twice, or changed, or not at all, as the seed
// decides. Virtual time, no I/O: the simulated network is made of these, and wire/io/faults puts one before a real
// socket. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "queue/rng.h"
#include "queue/types.h"
#include "wire/packet/datagram.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

struct LinkDatagram {
  Endpoint from;
  Endpoint to;
  std::vector<std::byte> bytes;
  IpOptions ip{};
  friend bool operator==(const LinkDatagram&, const LinkDatagram&) = default;
};

struct LinkConfig {
  std::uint64_t seed = 1;
  queue::Duration latency{0};
  queue::Duration jitter{0};  // uniform in [0, jitter] on top; keeps order unless `reorder` says otherwise
  double loss = 0;            // probabilities, 0 to 1
  double duplicate = 0;
  double reorder = 0;  // this datagram may be overtaken: it waits reorder_delay more
  queue::Duration reorder_delay{std::chrono::microseconds(50)};
  double corrupt = 0;                  // one bit of it flips
  std::size_t mtu_bytes = 65507;       // larger datagrams vanish
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  std::size_t queue_bytes = 0;         // 0: no limit; a datagram that does not fit vanishes (a socket buffer)
  std::size_t overhead_bytes = 0;      // what the queue counts for a datagram besides its bytes (skb truesize)
};

struct LinkCounters {
  std::uint64_t sent = 0, delivered = 0, lost = 0, duplicated = 0, reordered = 0, corrupted = 0;
  std::uint64_t overflowed = 0;  // did not fit queue_bytes
  std::uint64_t oversized = 0;   // longer than mtu_bytes
  friend bool operator==(const LinkCounters&, const LinkCounters&) = default;
};

class Link {
 public:
  explicit Link(LinkConfig config);

  void send(queue::Instant now, LinkDatagram datagram);
  // What has arrived by `now`, oldest first; nothing: nullopt.
  std::optional<LinkDatagram> take(queue::Instant now);
  std::optional<queue::Instant> next_arrival() const;
  bool is_idle() const;  // nothing under way, nothing held

  // Exact tools, for scripted tests. drop_next: the next datagram that matches vanishes, once a call.
  void drop_next(std::function<bool(const LinkDatagram&)> matches);
  void hold();                       // what is sent from now on waits ...
  void release(queue::Instant now);  // ... until this, in order
  void record(bool on);              // keep a copy of everything sent
  const std::vector<LinkDatagram>& recorded() const { return recorded_; }
  void replay(queue::Instant now, const LinkDatagram& datagram) { deliver(now, datagram); }  // past every fault

  const LinkCounters& counters() const { return counters_; }

 private:
  struct InFlight {
    queue::Instant arrival;
    std::uint64_t order;
    LinkDatagram datagram;
  };
  void transmit(queue::Instant now, LinkDatagram datagram);  // through every fault
  queue::Instant leave(queue::Instant now, std::size_t bytes);
  queue::Instant delay_if_reordered(queue::Instant arrival);
  void deliver(queue::Instant arrival, LinkDatagram datagram);
  static bool arrives_later(const InFlight& a, const InFlight& b);

  LinkConfig config_;
  queue::Rng rng_;
  std::vector<InFlight> in_flight_;  // a heap, earliest arrival first
  std::vector<std::function<bool(const LinkDatagram&)>> drop_next_;
  std::vector<LinkDatagram> held_;
  std::vector<LinkDatagram> recorded_;
  queue::Instant line_free_at_{};  // when the last datagram has left, with bytes_per_second
  queue::Instant last_arrival_{};  // keeps order
  std::size_t queued_bytes_ = 0;   // sent and not yet taken
  std::uint64_t next_order_ = 0;
  bool is_holding_ = false;
  bool is_recording_ = false;
  LinkCounters counters_;
};

}  // namespace nicless::wire
