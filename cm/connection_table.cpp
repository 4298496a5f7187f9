// SPDX-License-Identifier: MIT
#include "cm/connection_table.h"

#include <utility>

namespace nicless::cm {

std::size_t ConnectionTable::PeerHash::operator()(const PeerKey& key) const {
  return EndpointHash{}(key.address) * 31 + key.remote_id.value();
}

ConnectionTable::PeerKey ConnectionTable::key_of(const ConnectionEntry& entry) const {
  return {entry.path.remote.address, entry.connection.remote_id()};
}

ConnectionEntry& ConnectionTable::add(Connection connection, MadPath path, CmId* owner) {
  const CommId id = connection.local_id();
  auto [place, is_new] = by_local_.try_emplace(id, new ConnectionEntry{std::move(connection), path, owner, {}});
  NICLESS_CHECK(is_new);
  ConnectionEntry& entry = *place->second;
  by_remote_[entry.path.remote].insert(id);
  refresh(entry);
  return entry;
}

void ConnectionTable::erase(ConnectionEntry& entry) {
  const CommId id = entry.connection.local_id();
  if (entry.armed) deadlines_.erase({*entry.armed, id});
  const auto peer = by_peer_.find(key_of(entry));
  if (peer != by_peer_.end() && peer->second == id) by_peer_.erase(peer);
  forget_remote(entry);
  by_local_.erase(id);
}

void ConnectionTable::refresh(ConnectionEntry& entry) {
  const CommId id = entry.connection.local_id();
  if (entry.connection.remote_id().value() != 0) {
    CommId& holder = by_peer_.try_emplace(key_of(entry), id).first->second;
    const ConnectionEntry* held = find(holder);
    if (held == nullptr || held->connection.is_finished()) holder = id;
  }
  const auto deadline = entry.connection.next_deadline();
  if (deadline == entry.armed) return;
  if (entry.armed) deadlines_.erase({*entry.armed, id});
  if (deadline) deadlines_.insert({*deadline, id});
  entry.armed = deadline;
}

void ConnectionTable::move(ConnectionEntry& entry, const wire::Endpoint& remote) {
  if (entry.path.remote == remote) return;
  forget_remote(entry);
  entry.path.remote = remote;
  by_remote_[remote].insert(entry.connection.local_id());
}

ConnectionEntry* ConnectionTable::find(CommId local_id) {
  const auto place = by_local_.find(local_id);
  return place == by_local_.end() ? nullptr : place->second.get();
}

ConnectionEntry* ConnectionTable::find_by_peer(const wire::Gid& peer, CommId remote_id) {
  const auto place = by_peer_.find({peer, remote_id});
  if (place == by_peer_.end()) return nullptr;
  ConnectionEntry* entry = find(place->second);
  return entry != nullptr && !entry->connection.is_finished() ? entry : nullptr;
}

std::vector<CommId> ConnectionTable::at(const wire::Endpoint& remote) const {
  const auto place = by_remote_.find(remote);
  if (place == by_remote_.end()) return {};
  return {place->second.begin(), place->second.end()};
}

ConnectionEntry* ConnectionTable::find_probeable(const wire::Endpoint& remote) {
  const auto place = by_remote_.find(remote);
  if (place == by_remote_.end()) return nullptr;
  for (const CommId id : place->second)
    if (ConnectionEntry* entry = find(id); entry != nullptr && entry->connection.is_probeable()) return entry;
  return nullptr;
}

std::optional<Instant> ConnectionTable::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

ConnectionEntry* ConnectionTable::next_due(Instant now) {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return nullptr;
  return find(deadlines_.begin()->second);
}

void ConnectionTable::forget_remote(ConnectionEntry& entry) {
  const auto place = by_remote_.find(entry.path.remote);
  if (place == by_remote_.end()) return;
  place->second.erase(entry.connection.local_id());
  if (place->second.empty()) by_remote_.erase(place);
}

}  // namespace nicless::cm
