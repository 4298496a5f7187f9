// SPDX-License-Identifier: MIT
#include "cm/peer_watch.h"

namespace nicless::cm {

void PeerWatch::watch(Instant now, const wire::Endpoint& peer) {
  const auto [place, is_new] = due_.try_emplace(peer, now + kInterval);
  if (is_new) order_.insert({place->second, peer});
}

void PeerWatch::forget(const wire::Endpoint& peer) {
  const auto place = due_.find(peer);
  if (place == due_.end()) return;
  order_.erase({place->second, peer});
  due_.erase(place);
}

std::optional<wire::Endpoint> PeerWatch::next_due(Instant now) {
  if (order_.empty() || order_.begin()->first > now) return std::nullopt;
  const wire::Endpoint peer = order_.begin()->second;
  forget(peer);
  watch(now, peer);
  return peer;
}

std::optional<Instant> PeerWatch::next_deadline() const {
  if (order_.empty()) return std::nullopt;
  return order_.begin()->first;
}

}  // namespace nicless::cm
