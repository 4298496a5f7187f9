// SPDX-License-Identifier: MIT
// Every connection of the process, found in constant time by what a message carries: this end's id, or the peer's id
// and address; and by deadline. Knows addresses and the socket to use, as values. Called with the agent's lock held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cm/connection.h"
#include "cm/endpoint_hash.h"
#include "queue/deadlines.h"
#include "wire/packet/endpoint.h"

struct nicless_gsi;

namespace nicless::cm {

struct CmId;

// How a connection's messages travel.
struct MadPath {
  nicless_gsi* gsi = nullptr;
  wire::Gid local;
  wire::Endpoint remote;  // the port: the listener's, and after the REP that of the peer's process
  std::uint8_t traffic_class = 0;
};

struct OutgoingMad {
  MadPath path;
  wire::CmMessage message;
};

struct ConnectionEntry {
  Connection connection;
  MadPath path;
  CmId* owner = nullptr;     // null: the program has destroyed the id, the release goes on
  queue::Qpn indexed_qpn{};  // of the peer, while the table finds the entry by it
  // The UDP port that the request came to, which stays open, whatever becomes of the listener, as long as the peer may
  // ask there again: a closed one would tell it that nobody listens. Null at the active end.
  std::shared_ptr<void> listener_port{};
  // The UDP port of this end's queue pair, which stays open while the connection stands or is being made, whatever
  // becomes of the queue pair: a closed one tells the peer that this process has died. Null in strict RoCE v2 mode.
  std::shared_ptr<void> data_port{};
};

class ConnectionTable {
 public:
  // The connection's local id must be new here.
  ConnectionEntry& add(Connection connection, MadPath path, CmId* owner);
  void erase(ConnectionEntry& entry);
  // After any call to the connection: its deadline, its peer's id may have changed.
  void refresh(ConnectionEntry& entry);
  // After its first answer: the peer's process has another port than the service.
  void move(ConnectionEntry& entry, const wire::Endpoint& remote);

  ConnectionEntry* find(CommId local_id);
  // By the peer's id: a repeated REQ, or a REJ from someone who never learnt this end's id. Not one that is finished:
  // a refused peer that asks again asks anew.
  ConnectionEntry* find_by_peer(const wire::Gid& peer, CommId remote_id);
  // The connection that stands, or is being made, with that queue pair; null: none. One that is being released or was
  // ended does not count, since queue pair numbers are few and come back soon.
  ConnectionEntry* find_by_qpn(const wire::Gid& peer, queue::Qpn qpn);
  std::vector<CommId> all() const;
  template <typename Predicate>
  bool any_of(Predicate&& predicate) const {
    return std::any_of(by_local_.begin(), by_local_.end(), [&](const auto& each) { return predicate(*each.second); });
  }
  std::vector<CommId> at(const wire::Endpoint& remote) const;
  std::size_t count_at(const wire::Endpoint& remote) const;
  // One of them that a probe makes sense for, each in turn; or null.
  ConnectionEntry* find_probeable(const wire::Endpoint& remote);

  std::optional<Instant> next_deadline() const;
  ConnectionEntry* next_due(Instant now);
  std::size_t size() const { return by_local_.size(); }

 private:
  // A number of the peer's: its id of the connection, or its queue pair.
  template <typename Id>
  using PeerKey = std::pair<wire::Gid, Id>;
  struct PeerHash {
    template <typename Id>
    std::size_t operator()(const PeerKey<Id>& key) const {
      return EndpointHash{}(key.first) * 31 + key.second.value();
    }
  };
  template <typename Id>
  using ByPeer = std::unordered_map<PeerKey<Id>, CommId, PeerHash>;

  void refresh_qpn(ConnectionEntry& entry);
  void forget_remote(ConnectionEntry& entry);

  std::unordered_map<CommId, std::unique_ptr<ConnectionEntry>> by_local_;
  ByPeer<CommId> by_peer_;
  ByPeer<queue::Qpn> by_qpn_;
  struct AtRemote {
    std::set<CommId> ids;
    CommId probed{};  // the last one that find_probeable gave
  };
  std::unordered_map<wire::Endpoint, AtRemote, EndpointHash> by_remote_;
  queue::Deadlines<CommId> deadlines_;
};

}  // namespace nicless::cm
