// SPDX-License-Identifier: MIT
// What the engine asks of a queue pair of any transport: the five calls, with packets already decoded. Sans-IO: time is
// an argument, the next deadline a return value, and calling one of them too often is harmless. Port-bound.
#pragma once

#include <optional>

#include "queue/types.h"
#include "wire/counters.h"
#include "wire/packet/datagram.h"
#include "wire/packet/packet.h"

namespace nicless::wire {

class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // A packet for this queue pair, ICRC checked. `datagram` says where it came from; `packet.payload` points into it.
  virtual void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) = 0;
  virtual void on_post(queue::Instant now) = 0;
  virtual void on_deadline(queue::Instant now) = 0;
  // Fills `out` (but for the ICRC) and returns true, or returns false when there is nothing to send now. The spans in
  // `out` point at registered memory: send them before the port's lock is released.
  virtual bool next_datagram(queue::Instant now, OutDatagram& out) = 0;
  virtual std::optional<queue::Instant> next_deadline() const = 0;
  // All that next_datagram gave out has left: an unreliable transport completes its work requests now.
  virtual void on_sent() {}
  // What it has counted so far, if it counts.
  virtual const QpCounters* find_counters() const { return nullptr; }
};

}  // namespace nicless::wire
