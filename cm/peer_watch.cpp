// SPDX-License-Identifier: MIT
#include "cm/peer_watch.h"

#include <algorithm>

namespace nicless::cm {

void PeerWatch::watch(Instant now, const wire::Endpoint& peer, Duration interval) {
  const auto [known, is_new] = watched_.try_emplace(peer, interval);
  if (is_new) return due_.set(peer, now + interval);
  known->second = std::min(known->second, interval);
}

void PeerWatch::forget(const wire::Endpoint& peer) {
  watched_.erase(peer);
  due_.erase(peer);
}

void PeerWatch::on_heard(Instant now, const wire::Endpoint& peer) {
  const auto known = watched_.find(peer);
  if (known != watched_.end()) due_.set(peer, now + known->second);
}

std::optional<wire::Endpoint> PeerWatch::next_due(Instant now) {
  const auto peer = due_.due(now);
  if (peer) on_heard(now, *peer);
  return peer;
}

}  // namespace nicless::cm
