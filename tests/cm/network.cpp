// SPDX-License-Identifier: MIT
#include "tests/cm/network.h"

#include <catch2/catch.hpp>

#include "tests/cm/pair.h"
#include "wire/addressing.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/print.h"

namespace nicless::cm::test {
namespace {

constexpr std::uint16_t kService = 7471;
constexpr std::size_t kTraceLines = 400;

wire::Gid address_of(std::size_t host) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = static_cast<std::byte>(host + 1);
  return gid;
}

std::size_t host_of(const wire::Gid& address) {
  return std::to_integer<std::size_t>(address.bytes[15]) - 1;
}

// The board only hands the owner back.
CmId* to_owner(Id& id) {
  return reinterpret_cast<CmId*>(&id);
}

Id& to_id(CmId* owner) {
  return *reinterpret_cast<Id*>(owner);
}

std::string milliseconds(Instant now) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count()) + " ms ";
}

}  // namespace

Network::Network(const NetworkConfig& config) : config_(config), rng_(config.faults.seed), hosts_(config.hosts) {
  rebuild_links(config.faults);
  for (std::size_t host = 0; host < hosts_.size(); ++host) start(host);
}

void Network::rebuild_links(const wire::LinkConfig& faults) {
  links_.clear();
  for (std::size_t i = 0; i < hosts_.size() * hosts_.size(); ++i) {
    wire::LinkConfig one = faults;
    one.seed = faults.seed * 1000 + i;
    links_.emplace_back(one);
  }
}

void Network::heal() {
  rebuild_links({.seed = config_.faults.seed, .latency = std::chrono::milliseconds(1)});
}

void Network::cut(std::size_t host, queue::Duration time) {
  note("cut off host " + std::to_string(host));
  hosts_[host].cut_until = now + time;
}

void Network::start(std::size_t host) {
  hosts_[host].board = std::make_unique<Switchboard>();
  ++hosts_[host].lives;
  hosts_[host].queue_pairs = 0;
  hosts_[host].queued = 0;
  listen(host);
}

void Network::stop_listening(std::size_t host) {
  note("host " + std::to_string(host) + " listens no more");
  hosts_[host].listener.reset();
}

void Network::listen(std::size_t host) {
  std::shared_ptr<int> held = hosts_[host].service_port.lock();
  hosts_[host].listener = held != nullptr ? held : std::make_shared<int>(0);
  hosts_[host].service_port = hosts_[host].listener;
}

void Network::kill(std::size_t host) {
  note("kill host " + std::to_string(host));
  for (Id& id : ids_)
    if (id.host == host) id.entry = nullptr;
  hosts_[host].board.reset();
  hosts_[host].listener.reset();
}

void Network::exit(std::size_t host) {
  hosts_[host].board->leave(now);
  flush(host);
  CHECK_FALSE(hosts_[host].board->owes_farewell());
  kill(host);
}

wire::Endpoint Network::service_endpoint(std::size_t host) const {
  return {address_of(host), config_.is_strict ? wire::kRoceUdpPort : kService};
}

wire::Endpoint Network::process_endpoint(std::size_t host) const {
  const auto port = static_cast<std::uint16_t>(config_.is_strict ? wire::kRoceUdpPort : 40000 + hosts_[host].lives);
  return {address_of(host), port};
}

bool Network::is_open(std::size_t host, std::uint16_t port) const {
  if (!is_alive(host)) return false;
  return port == process_endpoint(host).port || (port == service_endpoint(host).port && has_service_port(host));
}

queue::Qpn Network::next_qpn(std::size_t host) {
  const std::uint32_t index = hosts_[host].queue_pairs++;
  if (config_.is_strict) return queue::Qpn(0x11 + index);
  return queue::Qpn(std::uint32_t{process_endpoint(host).port} << 8 | (index & 0xff));
}

Identity Network::make_identity(std::size_t host) {
  CommId id{};
  do {
    id = CommId(rng_.next_u32());
  } while (id.value() == 0 || hosts_[host].board->find(id) != nullptr);
  return {id, rng_.next_u64(), host + 1};
}

Id& Network::add_id(std::size_t host, bool is_active) {
  Id& id = ids_.emplace_back();
  id.host = host;
  id.life = hosts_[host].lives;
  id.is_active = is_active;
  id.name = std::string(is_active ? "active" : "passive") + " id " + std::to_string(ids_.size()) + " of host " +
            std::to_string(host);
  return id;
}

Id& Network::connect(std::size_t from, std::size_t to) {
  Id& id = add_id(from, true);
  wire::CmReq req = request();
  req.local_qpn = id.qpn = next_qpn(from);
  req.starting_psn = wire::Psn(rng_.next_u32());
  const MadPath path{nullptr, address_of(from), service_endpoint(to), 0};
  id.entry = &hosts_[from].board->add(Connection::connect(now, make_identity(from), req), path, to_owner(id));
  act(id);
  return id;
}

void Network::accept(Id& id) {
  wire::CmRep rep = reply();
  rep.local_qpn = id.qpn = next_qpn(id.host);
  rep.starting_psn = wire::Psn(rng_.next_u32());
  if (id.connection().accept(now, rep)) id.has_accepted = true;
  act(id);
}

void Network::establish(Id& id) {
  if (id.connection().establish()) id.has_established = true;
  act(id);
}

void Network::reject(Id& id) {
  if (id.connection().reject(wire::RejReason::ConsumerDefined, {})) id.has_rejected = true;
  act(id);
}

void Network::disconnect(Id& id) {
  id.has_disconnected = true;
  id.connection().disconnect(now);
  act(id);
}

void Network::destroy(Id& id) {
  note("destroy " + id.name);
  hosts_[id.host].board->orphan(*id.entry, now);
  id.entry = nullptr;
  flush(id.host);
}

void Network::send_data(const Id& id) {
  const wire::Gid& peer = id.entry->path.remote.address;
  const queue::Qpn qpn = id.entry->connection.agreement().remote_qpn;
  const auto numbers = wire::Addressing::port_in_qpn();
  const std::uint16_t port = numbers.udp_port_of(qpn);
  if (config_.is_strict || is_open(host_of(peer), port)) return;
  note(id.name + " finds the port of its peer closed");
  hosts_[id.host].board->on_data_port_closed(now, peer, {numbers.qpn(port, 0), numbers.queue_pairs_per_port()});
  flush(id.host);
}

void Network::act(Id& id) {
  hosts_[id.host].board->pump(*id.entry, now);
  flush(id.host);
}

void Network::flush(std::size_t host) {
  Switchboard& board = *hosts_[host].board;
  while (const auto outgoing = board.next_message()) send(host, *outgoing);
  while (const auto told = board.next_event()) {
    Id& id = to_id(told->owner);
    id.events.push_back(told->event);
    if (!id.hear(told->event)) id.is_impossible = true;
    note(id.name + ": " + name_of(told->event));
    if (on_event) on_event(id, told->event);
  }
}

void Network::send(std::size_t from, const Switchboard::Outgoing& outgoing) {
  const auto bytes = wire::encode(outgoing.message);
  note(std::to_string(from) + " -> " + wire::to_string(outgoing.path.remote) + " " + wire::to_string(outgoing.message));
  ++hosts_[from].sent;
  const std::size_t to = host_of(outgoing.path.remote.address);
  if (std::max(hosts_[from].cut_until, hosts_[to].cut_until) > now) return;
  link(from, to).send(now, {process_endpoint(from), outgoing.path.remote, {bytes.begin(), bytes.end()}});
}

void Network::forge(std::size_t from, std::size_t to, const wire::CmMessage& message) {
  const auto bytes = wire::encode(message);
  arrive(from, to, {process_endpoint(from), process_endpoint(to), {bytes.begin(), bytes.end()}});
}

void Network::lose_next(std::size_t from, std::size_t to, const std::string& name) {
  link(from, to).drop_next([name](const wire::LinkDatagram& datagram) { return name == name_of_message(datagram); });
}

void Network::arrive(std::size_t from, std::size_t host, const wire::LinkDatagram& datagram) {
  if (!is_open(host, datagram.to.port)) {
    deny(host, datagram);
    if (!is_alive(from)) return;
    hosts_[from].board->on_unreachable(now, datagram.to);
    return flush(from);
  }
  const MadPath path{nullptr, datagram.to.address, datagram.from, 0};
  const wire::CmMessage message = decode(datagram);
  note(std::to_string(host) + " <- " + wire::to_string(datagram.from) + " " + wire::to_string(message));
  if (hosts_[host].board->on_message(now, path, message)) return flush(host);
  if (std::holds_alternative<wire::CmReq>(message.body)) return request_arrived(host, path, message);
  if (const auto answer = wire::answer_of_nobody(message)) send(host, {path, *answer});
}

// ICMP says that nobody listens. Of a request that a living id has still to answer, that is a lie.
void Network::deny(std::size_t host, const wire::LinkDatagram& datagram) {
  const wire::CmMessage message = decode(datagram);
  const auto* req = std::get_if<wire::CmReq>(&message.body);
  if (req == nullptr) return;
  for (Id& id : ids_) {
    if (id.host != host || id.entry == nullptr || id.is_active || !id.connection().is_unconfirmed()) continue;
    if (id.connection().remote_id() != req->local_id) continue;
    note(id.name + " is denied");
    id.is_denied = true;
  }
}

void Network::request_arrived(std::size_t host, const MadPath& path, const wire::CmMessage& message) {
  if (hosts_[host].listener == nullptr)
    return send(host, {path, wire::refusal(message, wire::RejReason::InvalidServiceId)});
  if (hosts_[host].queued >= config_.backlog) return;
  Id& id = add_id(host, false);
  id.entry = &hosts_[host].board->add(Connection::answer(make_identity(host), message), path, to_owner(id));
  id.entry->listener_port = hosts_[host].listener;
  ++hosts_[host].queued;
  const int life = id.life;
  at(now + std::chrono::milliseconds(rng_.below(4) == 0 ? rng_.below(3000) : 0), [this, &id, host, life] {
    if (hosts_[host].lives != life || !is_alive(host)) return;
    --hosts_[host].queued;
    if (on_request) on_request(id);
  });
}

std::optional<Instant> Network::next_time() const {
  std::optional<Instant> next;
  if (!agenda_.empty()) next = agenda_.begin()->first;
  for (const wire::Link& each : links_) next = queue::earliest(next, each.next_arrival());
  for (const Host& host : hosts_)
    if (host.board) next = queue::earliest(next, host.board->next_deadline());
  return next;
}

bool Network::step(Instant until) {
  const auto next = next_time();
  if (!next || *next > until) return false;
  now = std::max(now, *next);
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      while (const auto datagram = link(from, to).take(now)) arrive(from, to, *datagram);
    }
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    if (!hosts_[host].board) continue;
    hosts_[host].board->on_deadline(now);
    flush(host);
  }
  while (!agenda_.empty() && agenda_.begin()->first <= now) {
    const auto what = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    what();
  }
  return true;
}

void Network::run_until(Instant until) {
  while (step(until)) {
  }
  now = until;
}

bool Network::run_until_idle(queue::Duration limit) {
  const Instant end = now + limit;
  while (step(end)) {
  }
  return !next_time();
}

Id* Network::peer_of(const Id& id) {
  for (Id& other : ids_) {
    if (other.entry == nullptr || &other == &id) continue;
    if (other.host == host_of(id.entry->path.remote.address) &&
        other.connection().local_id() == id.entry->connection.remote_id())
      return &other;
  }
  return nullptr;
}

void Network::note(const std::string& line) {
  trace_.push_back(milliseconds(now) + line);
  if (trace_.size() > kTraceLines) trace_.pop_front();
}

std::string Network::trace() const {
  std::string text;
  for (const std::string& line : trace_) text += line + "\n";
  return text;
}

}  // namespace nicless::cm::test
