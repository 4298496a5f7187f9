// SPDX-License-Identifier: MIT
// What a port tells whoever listens in: every datagram sent and received, as it is on the wire. Called by the port's
// holder, from any thread, several ports at once: implementations lock for themselves.
#pragma once

#include "queue/types.h"
#include "wire/packet/datagram.h"

namespace nicless::wire {

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void on_sent(queue::Instant now, const OutDatagram& sealed) = 0;
  virtual void on_received(queue::Instant now, const InDatagram& datagram) = 0;
  virtual void on_turn_end() = 0;  // what was told so far must survive the death of the process
};

}  // namespace nicless::wire
