// SPDX-License-Identifier: MIT
#include "cm/connection_table.h"

namespace nicless::cm {

namespace {

// Whoever gives a number to another connection takes it from this one.
template <typename Index, typename Key>
void forget(Index& index, const Key& key, CommId id) {
  const auto place = index.find(key);
  if (place != index.end() && place->second == id) index.erase(place);
}

}  // namespace

ConnectionEntry& ConnectionTable::add(Connection connection, MadPath path, CmId* owner) {
  const CommId id = connection.local_id();
  auto [place, is_new] = by_local_.try_emplace(id, new ConnectionEntry{std::move(connection), path, owner, {}, {}, {}});
  NICLESS_CHECK(is_new);
  ConnectionEntry& entry = *place->second;
  by_remote_[entry.path.remote].ids.insert(id);
  refresh(entry);
  return entry;
}

void ConnectionTable::erase(ConnectionEntry& entry) {
  const CommId id = entry.connection.local_id();
  deadlines_.erase(id);
  const wire::Gid& peer = entry.path.remote.address;
  forget(by_peer_, std::pair(peer, entry.connection.remote_id()), id);
  forget(by_qpn_, std::pair(peer, entry.indexed_qpn), id);
  forget_remote(entry);
  by_local_.erase(id);
}

void ConnectionTable::refresh(ConnectionEntry& entry) {
  const CommId id = entry.connection.local_id();
  if (entry.connection.remote_id().value() != 0) {
    const PeerKey<CommId> key{entry.path.remote.address, entry.connection.remote_id()};
    CommId& holder = by_peer_.try_emplace(key, id).first->second;
    const ConnectionEntry* held = find(holder);
    if (held == nullptr || held->connection.is_finished()) holder = id;
  }
  refresh_qpn(entry);
  deadlines_.set(id, entry.connection.next_deadline());
}

void ConnectionTable::refresh_qpn(ConnectionEntry& entry) {
  const queue::Qpn qpn = entry.connection.occupied_qpn();
  if (qpn == entry.indexed_qpn) return;
  const CommId id = entry.connection.local_id();
  const wire::Gid& peer = entry.path.remote.address;
  forget(by_qpn_, std::pair(peer, entry.indexed_qpn), id);
  if (qpn.value() != 0) by_qpn_[{peer, qpn}] = id;
  entry.indexed_qpn = qpn;
}

void ConnectionTable::move(ConnectionEntry& entry, const wire::Endpoint& remote) {
  if (entry.path.remote == remote) return;
  forget_remote(entry);
  entry.path.remote = remote;
  by_remote_[remote].ids.insert(entry.connection.local_id());
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

ConnectionEntry* ConnectionTable::find_by_qpn(const wire::Gid& peer, queue::Qpn qpn) {
  const auto place = by_qpn_.find({peer, qpn});
  return place == by_qpn_.end() ? nullptr : find(place->second);
}

std::vector<CommId> ConnectionTable::all() const {
  std::vector<CommId> ids;
  for (const auto& [id, entry] : by_local_) ids.push_back(id);
  return ids;
}

std::vector<CommId> ConnectionTable::at(const wire::Endpoint& remote) const {
  const auto place = by_remote_.find(remote);
  if (place == by_remote_.end()) return {};
  return {place->second.ids.begin(), place->second.ids.end()};
}

std::size_t ConnectionTable::count_at(const wire::Endpoint& remote) const {
  const auto place = by_remote_.find(remote);
  return place == by_remote_.end() ? 0 : place->second.ids.size();
}

ConnectionEntry* ConnectionTable::find_probeable(const wire::Endpoint& remote) {
  const auto place = by_remote_.find(remote);
  if (place == by_remote_.end()) return nullptr;
  AtRemote& here = place->second;
  auto next = here.ids.upper_bound(here.probed);
  for (std::size_t looked_at = 0; looked_at < here.ids.size(); ++looked_at, ++next) {
    if (next == here.ids.end()) next = here.ids.begin();
    ConnectionEntry* entry = find(*next);
    if (entry == nullptr || !entry->connection.is_probeable()) continue;
    here.probed = *next;
    return entry;
  }
  return nullptr;
}

std::optional<Instant> ConnectionTable::next_deadline() const {
  return deadlines_.next();
}

ConnectionEntry* ConnectionTable::next_due(Instant now) {
  const auto id = deadlines_.due(now);
  return id ? find(*id) : nullptr;
}

void ConnectionTable::forget_remote(ConnectionEntry& entry) {
  const auto place = by_remote_.find(entry.path.remote);
  if (place == by_remote_.end()) return;
  place->second.ids.erase(entry.connection.local_id());
  if (place->second.ids.empty()) by_remote_.erase(place);
}

}  // namespace nicless::cm
