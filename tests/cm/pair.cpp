// SPDX-License-Identifier: MIT
#include "tests/cm/pair.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

namespace nicless::cm::test {
namespace {

constexpr Identity kActive{.local_id = CommId(0x11111111), .tid = 0x211111111, .ca_guid = 0xa};
constexpr Identity kPassive{.local_id = CommId(0x22222222), .tid = 0x222222222, .ca_guid = 0xb};

}  // namespace

wire::CmMessage decode(const wire::LinkDatagram& datagram) {
  std::array<std::byte, wire::CmMessage::kSize> bytes{};
  REQUIRE(datagram.bytes.size() == bytes.size());
  std::ranges::copy(datagram.bytes, bytes.begin());
  const auto decoded = wire::decode_cm(bytes);
  REQUIRE(decoded);
  return decoded.message;
}

std::string name_of_message(const wire::LinkDatagram& datagram) {
  return wire::name_of(decode(datagram));
}

std::string name_of(const ConnectionEvent& event) {
  static constexpr const char* kNames[] = {"REPLIED",     "ESTABLISHED",  "REJECTED",
                                           "UNREACHABLE", "DISCONNECTED", "TIMEWAIT_EXIT"};
  return kNames[event.index()];
}

std::vector<std::string> Side::sent_names() const {
  std::vector<std::string> names;
  for (const auto& message : sent) names.emplace_back(wire::name_of(message));
  return names;
}

std::vector<std::string> Side::event_names() const {
  std::vector<std::string> names;
  for (const auto& event : events) names.emplace_back(name_of(event));
  return names;
}

wire::CmReq request() {
  wire::CmReq req;
  req.service = wire::service_id(wire::PortSpace::Tcp, 7471);
  req.local_qpn = queue::Qpn(0x100001);
  req.starting_psn = wire::Psn(0x111);
  req.responder_resources = 4;
  req.initiator_depth = 3;
  req.retry_count = 7;
  req.rnr_retry_count = 6;
  req.path_mtu = 3;
  req.primary.ack_timeout = 17;
  req.primary.hop_limit = 64;
  return req;
}

wire::CmRep reply() {
  wire::CmRep rep;
  rep.local_qpn = queue::Qpn(0x200002);
  rep.starting_psn = wire::Psn(0x222);
  rep.responder_resources = 2;
  rep.initiator_depth = 1;
  rep.rnr_retry_count = 5;
  return rep;
}

Pair::Pair(const wire::LinkConfig& config)
    : to_passive_(config), to_active_([&] {
        wire::LinkConfig other = config;
        other.seed = config.seed + 1000003;
        return other;
      }()) {
  on_request = [this](Connection& c) { CHECK(c.accept(now, reply()).has_value()); };
  on_reply = [](Connection& c) { CHECK(c.establish().has_value()); };
}

void Pair::connect(wire::CmReq req) {
  active.connection = Connection::connect(now, kActive, std::move(req));
  drain();
}

void Pair::lose(Side& from, const std::string& name, int nth) {
  auto left = std::make_shared<int>(nth);
  (&from == &active ? to_passive_ : to_active_).drop_next([left, name](const wire::LinkDatagram& datagram) {
    return name == name_of_message(datagram) && --*left == 0;
  });
}

void Pair::drain() {
  drain(active, to_passive_);
  drain(passive, to_active_);
}

void Pair::drain(Side& side, wire::Link& link) {
  if (!side.connection) return;
  while (auto event = side.connection->next_event()) {
    side.events.push_back(*event);
    program(side, *event);
  }
  while (auto message = side.connection->next_message()) {
    side.sent.push_back(*message);
    const auto bytes = wire::encode(*message);
    link.send(now, {{}, {}, {bytes.begin(), bytes.end()}});
  }
}

void Pair::program(Side& side, const ConnectionEvent& event) {
  if (std::holds_alternative<Replied>(event) && on_reply) on_reply(*side.connection);
}

void Pair::arrive(Side& side, const wire::CmMessage& message) {
  if (!side.connection) {
    if (!std::holds_alternative<wire::CmReq>(message.body)) return;
    side.connection = Connection::answer(kPassive, message);
    if (on_request) on_request(*side.connection);
    return;
  }
  side.connection->on_message(now, message);
}

std::optional<Instant> Pair::next_time() const {
  std::optional<Instant> next = queue::earliest(to_passive_.next_arrival(), to_active_.next_arrival());
  if (active.connection) next = queue::earliest(next, active.connection->next_deadline());
  if (passive.connection) next = queue::earliest(next, passive.connection->next_deadline());
  return next;
}

bool Pair::step(Instant until) {
  drain();
  const auto next = next_time();
  if (!next || *next > until) return false;
  now = std::max(now, *next);
  while (auto datagram = to_passive_.take(now)) arrive(passive, decode(*datagram));
  while (auto datagram = to_active_.take(now)) arrive(active, decode(*datagram));
  if (active.connection) active.connection->on_deadline(now);
  if (passive.connection) passive.connection->on_deadline(now);
  return true;
}

void Pair::run_until(Instant until) {
  int steps = 0;
  while (step(until)) REQUIRE(++steps < 100000);
  now = until;
}

}  // namespace nicless::cm::test
