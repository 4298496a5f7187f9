// SPDX-License-Identifier: MIT
#include "cm/switchboard.h"

#include <utility>

#include "cm/answers.h"
#include "cm/take_front.h"
#include "wire/packet/cm_answers.h"

namespace nicless::cm {
namespace {

bool denies_connection(const wire::CmMessage& message) {
  const auto* rej = std::get_if<wire::CmRej>(&message.body);
  return rej != nullptr && rej->reason == wire::RejReason::InvalidCommId;
}

wire::CmMessage stale(const wire::CmMessage& reply) {
  const auto& rep = std::get<wire::CmRep>(reply.body);
  return {reply.tid, wire::CmRej{.local_id = rep.remote_id,
                                 .remote_id = rep.local_id,
                                 .answered = wire::CmAnswered::Rep,
                                 .reason = wire::RejReason::StaleConnection}};
}

}  // namespace

ConnectionEntry& Switchboard::add(Connection connection, const MadPath& path, CmId* owner) {
  return table_.add(std::move(connection), path, owner);
}

void Switchboard::pump(ConnectionEntry& entry, Instant now) {
  while (auto message = entry.connection.next_message()) outbox_.push_back({entry.path, *message});
  while (auto event = entry.connection.next_event())
    if (entry.owner != nullptr) told_.push_back({entry.owner, *event});
  if (!entry.connection.is_unconfirmed()) entry.listener_port.reset();
  if (!entry.connection.owes_farewell()) entry.data_port.reset();
  if (entry.owner == nullptr && entry.connection.is_finished()) return table_.erase(entry);
  table_.refresh(entry);
  if (entry.connection.is_probeable())
    peers_.watch(now, entry.path.remote, entry.connection.has_accepted() ? PeerWatch::kPatience : PeerWatch::kInterval);
}

void Switchboard::orphan(ConnectionEntry& entry, Instant now) {
  std::erase_if(told_, [&](const Told& told) { return told.owner == entry.owner; });
  entry.owner = nullptr;
  entry.connection.abandon(now);
  pump(entry, now);
}

void Switchboard::leave(Instant now) {
  for (const CommId id : table_.all()) {
    ConnectionEntry& entry = *table_.find(id);
    entry.connection.abandon(now);
    pump(entry, now);
  }
}

bool Switchboard::owes_farewell() const {
  return table_.any_of([](const ConnectionEntry& entry) { return entry.connection.owes_farewell(); });
}

bool Switchboard::on_message(Instant now, const MadPath& path, const wire::CmMessage& message) {
  ConnectionEntry* entry = find_addressee(table_, path.remote.address, message);
  const bool is_reply = std::holds_alternative<wire::CmRep>(message.body);
  if ((entry == nullptr || is_reply) && refuse_if_stale(now, path, message)) return true;
  if (entry == nullptr) return false;
  // Answers come from the endpoint of the peer's process, not from the port of the service.
  if (entry->connection.is_of_peer(message)) {
    table_.move(*entry, path.remote);
    note_alive(now, *entry);
  }
  const bool stood = entry->connection.is_established();
  entry->connection.on_message(now, message);
  const bool is_forgotten = stood && !entry->connection.is_established() && denies_connection(message);
  pump(*entry, now);
  if (is_forgotten && suspects_.insert(path.remote).second) probe_all(now, path.remote);
  return true;
}

// Of several connections each has to be asked after, as the peer may have lost one of them and speak of others.
void Switchboard::note_alive(Instant now, const ConnectionEntry& entry) {
  if (table_.count_at(entry.path.remote) == 1) peers_.on_heard(now, entry.path.remote);
}

// The peer knows nothing of a connection that stood: another process may be there in the place of the one that died.
void Switchboard::probe_all(Instant now, const wire::Endpoint& remote) {
  for (const CommId id : table_.at(remote)) {
    ConnectionEntry* entry = table_.find(id);
    if (entry == nullptr || !entry->connection.is_established()) continue;
    entry->connection.probe();
    pump(*entry, now);
  }
}

// A queue pair cannot have two connections: the peer has forgotten the one that is known here. The new one is refused,
// and the old one released. IBTA 12.9.8.3.1.
bool Switchboard::refuse_if_stale(Instant now, const MadPath& path, const wire::CmMessage& message) {
  const auto* req = std::get_if<wire::CmReq>(&message.body);
  const auto* rep = std::get_if<wire::CmRep>(&message.body);
  if (req == nullptr && rep == nullptr) return false;
  ConnectionEntry* old = find_stale(path.remote.address, req != nullptr ? req->local_qpn : rep->queue_pair(),
                                    rep != nullptr ? rep->remote_id : CommId{});
  if (old == nullptr) return false;
  outbox_.push_back({path, req != nullptr ? refusal(message, wire::RejReason::StaleConnection) : stale(message)});
  if (old->connection.is_established()) old->connection.disconnect(now);  // else it is being given up already
  pump(*old, now);
  return true;
}

// `asking`: the connection that the message is for, which may name its own queue pair again.
ConnectionEntry* Switchboard::find_stale(const wire::Gid& peer, queue::Qpn qpn, CommId asking) {
  ConnectionEntry* known = table_.find_by_qpn(peer, qpn);
  return known != nullptr && known->connection.local_id() != asking ? known : nullptr;
}

void Switchboard::on_unreachable(Instant now, const wire::Endpoint& remote) {
  for (const CommId id : table_.at(remote)) {
    ConnectionEntry* entry = table_.find(id);
    if (entry == nullptr) continue;
    entry->connection.on_unreachable(now);
    pump(*entry, now);
  }
}

void Switchboard::on_data_port_closed(Instant now, const wire::Gid& peer, const QpnRange& behind) {
  for (std::uint32_t i = 0; i < behind.count; ++i) {
    ConnectionEntry* entry = table_.find_by_qpn(peer, queue::Qpn(behind.first.value() + i));
    if (entry == nullptr) continue;
    entry->connection.on_unreachable(now);
    pump(*entry, now);
  }
}

bool Switchboard::on_unsendable(Instant now, const wire::CmMessage& message, int errno_value) {
  const auto* req = std::get_if<wire::CmReq>(&message.body);
  ConnectionEntry* entry = req != nullptr ? table_.find(req->local_id) : nullptr;
  if (entry == nullptr) return false;
  entry->connection.on_unsendable(errno_value);
  pump(*entry, now);
  return true;
}

void Switchboard::on_deadline(Instant now) {
  while (ConnectionEntry* entry = table_.next_due(now)) {
    entry->connection.on_deadline(now);
    pump(*entry, now);
  }
  while (const auto peer = peers_.next_due(now)) {
    suspects_.erase(*peer);
    ConnectionEntry* entry = table_.find_probeable(*peer);
    if (entry == nullptr) {
      peers_.forget(*peer);
    } else {
      entry->connection.probe();
      pump(*entry, now);
    }
  }
}

std::optional<Switchboard::Outgoing> Switchboard::next_message() {
  return take_front(outbox_);
}

std::optional<Switchboard::Told> Switchboard::next_event() {
  return take_front(told_);
}

std::optional<Instant> Switchboard::next_deadline() const {
  return queue::earliest(table_.next_deadline(), peers_.next_deadline());
}

}  // namespace nicless::cm
