// SPDX-License-Identifier: MIT
#include "cm/peer_watch.h"

namespace nicless::cm {

void PeerWatch::watch(Instant now, const wire::Endpoint& peer) {
  if (watched_.insert(peer).second) due_.set(peer, now + kInterval);
}

void PeerWatch::forget(const wire::Endpoint& peer) {
  watched_.erase(peer);
  due_.erase(peer);
}

std::optional<wire::Endpoint> PeerWatch::next_due(Instant now) {
  const auto peer = due_.due(now);
  if (peer) due_.set(*peer, now + kInterval);
  return peer;
}

}  // namespace nicless::cm
