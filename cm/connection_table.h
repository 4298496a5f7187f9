// SPDX-License-Identifier: MIT
// Every connection of the process, found in constant time by what a message carries: this end's id, or the peer's id
// and address; and by deadline. Knows addresses and the socket to use, as values. Called with the agent's lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cm/connection.h"
#include "cm/endpoint_hash.h"
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

struct ConnectionEntry {
  Connection connection;
  MadPath path;
  CmId* owner = nullptr;  // null: the program has destroyed the id, the release goes on
  std::optional<Instant> armed;
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
  std::vector<CommId> at(const wire::Endpoint& remote) const;
  // One of them that a probe makes sense for, or null.
  ConnectionEntry* find_probeable(const wire::Endpoint& remote);

  std::optional<Instant> next_deadline() const;
  ConnectionEntry* next_due(Instant now);
  std::size_t size() const { return by_local_.size(); }

 private:
  struct PeerKey {
    wire::Gid address;
    CommId remote_id;
    friend bool operator==(const PeerKey&, const PeerKey&) = default;
  };
  struct PeerHash {
    std::size_t operator()(const PeerKey& key) const;
  };
  PeerKey key_of(const ConnectionEntry& entry) const;
  void forget_remote(ConnectionEntry& entry);

  std::unordered_map<CommId, std::unique_ptr<ConnectionEntry>> by_local_;
  std::unordered_map<PeerKey, CommId, PeerHash> by_peer_;
  std::unordered_map<wire::Endpoint, std::unordered_set<CommId>, EndpointHash> by_remote_;
  std::set<std::pair<Instant, CommId>> deadlines_;
};

}  // namespace nicless::cm
