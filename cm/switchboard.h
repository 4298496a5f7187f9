// SPDX-License-Identifier: MIT
// Every connection of the process between its messages and its owners: which connection a message is for, who is to be
// told what, what is to be sent along which path, and when. No I/O: what has to leave is taken with next_message() and
// next_event() before the agent's lock is released. Called with the agent's lock held.
//
//   on_message(now, ...)   on_unreachable(now, ...)   on_deadline(now)   next_message()   next_event() next_deadline()
#pragma once

#include <deque>
#include <optional>
#include <unordered_set>
#include <variant>

#include "cm/connection_table.h"
#include "cm/endpoint_hash.h"
#include "cm/peer_watch.h"

namespace nicless::cm {

struct QpnRange {
  queue::Qpn first{};
  std::uint32_t count = 0;
};

class Switchboard {
 public:
  using Outgoing = OutgoingMad;
  struct Told {
    CmId* owner;
    ConnectionEvent event;
  };

  // The connection's local id must be new here. Nothing is sent before pump().
  ConnectionEntry& add(Connection connection, const MadPath& path, CmId* owner);
  ConnectionEntry* find(CommId local_id) { return table_.find(local_id); }
  std::size_t size() const { return table_.size(); }

  // After any call to the connection of an entry. The entry may be gone afterwards if it has no owner.
  void pump(ConnectionEntry& entry, Instant now);
  // The owner goes: the connection is abandoned and kept until the peer has been told and duplicates have died out.
  void orphan(ConnectionEntry& entry, Instant now);

  // The process is about to end: what its connections owe their peers is to be sent, and nothing will be told any more.
  void leave(Instant now);
  // leave() would send something.
  bool owes_farewell() const;

  // False: the message is for no connection of this process, or asks for a new one; nothing has happened.
  bool on_message(Instant now, const MadPath& path, const wire::CmMessage& message);
  // Nobody has the UDP port `remote` any more.
  void on_unreachable(Instant now, const wire::Endpoint& remote);
  // The same of the port of a peer's queue pairs, which have these numbers. A peer keeps the port open while a
  // connection with one of them stands, so that these have ended, whether or not their peer lives.
  void on_data_port_closed(Instant now, const wire::Gid& peer, const QpnRange& behind);
  // A message of next_message() that the operating system has refused for good. False: nobody minds, it is as good as
  // lost.
  bool on_unsendable(Instant now, const wire::CmMessage& message, int errno_value);
  void on_deadline(Instant now);
  std::optional<Outgoing> next_message();
  // Never of a connection that has lost its owner.
  std::optional<Told> next_event();
  std::optional<Instant> next_deadline() const;

 private:
  bool refuse_if_stale(Instant now, const MadPath& path, const wire::CmMessage& message);
  ConnectionEntry* find_stale(const wire::Gid& peer, queue::Qpn qpn, CommId asking);

  void note_alive(Instant now, const ConnectionEntry& entry);
  void probe_all(Instant now, const wire::Endpoint& remote);

  ConnectionTable table_;
  PeerWatch peers_;
  std::unordered_set<wire::Endpoint, EndpointHash> suspects_;  // all connections with it were probed this interval
  std::deque<Outgoing> outbox_;
  std::deque<Told> told_;
};

}  // namespace nicless::cm
