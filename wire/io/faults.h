// SPDX-License-Identifier: MIT
// Faults on purpose: a lossy link between a port's engine and its socket. Whatever the engine sends is sealed, copied
// and given to a wire::Link; what the link lets through leaves when the link says so. Only the way out is affected, so
// both ends run with faults for losses both ways. docs/FAULTS.md is the user's page. Port-bound.
//
// Reproducible: the fate of the n-th datagram of a port depends on nothing but the seed, the rates and n (and, of a
// flipped bit, on the datagram's length).
#pragma once

#include <optional>
#include <vector>

#include "queue/types.h"
#include "wire/io/send_batch.h"
#include "wire/link.h"

namespace nicless::wire {

class Faults {
 public:
  explicit Faults(const LinkConfig& config) : link_(config) {}

  // Takes over what stands in the batch, bytes and all, and empties it.
  void take(queue::Instant now, SendBatch& batch);
  // Fills an empty batch with what leaves by `due`, oldest first. The bytes are good until the next fill().
  void fill(queue::Instant due, SendBatch& batch);
  std::optional<queue::Instant> next_departure() const { return link_.next_arrival(); }

  const LinkCounters& counters() const { return link_.counters(); }

 private:
  Link link_;
  std::vector<LinkDatagram> leaving_;  // whose bytes stand in the batch
};

}  // namespace nicless::wire
