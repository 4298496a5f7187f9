// SPDX-License-Identifier: MIT
// Whether the processes at the other end are still there. A process that is killed says nothing, and its kernel, which
// knows no RDMA, sends no DREQ for it; but a datagram to its closed port brings an ICMP message. So every peer that
// owes this process nothing is sent a harmless message once in a while: one for all connections with it. A peer that
// has just spoken is alive and is not asked. One end is less patient than the other, so that of two that watch each
// other only one asks. Virtual time, no I/O. Called with the agent's lock held.
#pragma once

#include <optional>
#include <unordered_map>

#include "cm/endpoint_hash.h"
#include "cm/timeouts.h"
#include "queue/deadlines.h"
#include "wire/packet/endpoint.h"

namespace nicless::cm {

class PeerWatch {
 public:
  // For the end that connected, and for the one that accepted.
  static constexpr Duration kInterval = std::chrono::seconds(1);
  static constexpr Duration kPatience = std::chrono::milliseconds(1500);

  // There is a connection with that peer to watch; again and again does no harm, and the shortest interval is kept.
  void watch(Instant now, const wire::Endpoint& peer, Duration interval);
  void forget(const wire::Endpoint& peer);
  // It has spoken: its next turn comes an interval later.
  void on_heard(Instant now, const wire::Endpoint& peer);
  // A peer whose turn it is; its next turn comes an interval later.
  std::optional<wire::Endpoint> next_due(Instant now);
  std::optional<Instant> next_deadline() const { return due_.next(); }

 private:
  std::unordered_map<wire::Endpoint, Duration, EndpointHash> watched_;  // and how often
  queue::Deadlines<wire::Endpoint> due_;
};

}  // namespace nicless::cm
