// SPDX-License-Identifier: MIT
#include "tests/sim/pair.h"

#include <ostream>

#include "wire/packet/icrc.h"
#include "wire/packet/print.h"

namespace nicless::sim {

namespace {

constexpr std::uint16_t kPortA = 0x8f10;
constexpr std::uint16_t kPortB = 0x8f11;
constexpr int kCarryRoundsMax = 10000;

void connect_both(queue::Instant now, Side& a, Side& b, const ConnectionConfig& config) {
  a.connect(now, b, config, config.a_psn, config.b_psn);
  b.connect(now, a, config, config.b_psn, config.a_psn);
}

std::vector<std::byte> to_sealed_bytes(const Packet& packet, const wire::Endpoint& from, const wire::Endpoint& to) {
  wire::OutDatagram out;
  out.from = from;
  out.to = to;
  out.spans[0] = packet.payload;
  out.span_count = 1;
  out.payload_bytes = packet.payload.size();
  wire::finish_headers(packet.headers, out);
  wire::seal(out, 0);
  return wire::to_bytes(out);
}

}  // namespace

Pair::Pair(const PairConfig& config)
    : world(config.seed, config.faults),
      a(world.engine(0), world.endpoint(0), config.side, config.seed * 2 + 1),
      b(world.engine(1), world.endpoint(1), config.side, config.seed * 2 + 2) {
  connect_both(world.now(), a, b, config.connection);
}

queue::Result<void> Pair::send_from_a(const queue::Wqe& wqe) {
  auto result = a.post_send(world.now(), wqe);
  world.flush(0);
  return result;
}

queue::Result<void> Pair::send_from_b(const queue::Wqe& wqe) {
  auto result = b.post_send(world.now(), wqe);
  world.flush(1);
  return result;
}

std::ostream& operator<<(std::ostream& out, const Packet& packet) {
  return out << wire::to_string(wire::PacketView{packet.headers, packet.payload});
}

Packet make_packet(wire::Op op, queue::Qpn dest, std::uint32_t psn, std::span<const std::byte> payload) {
  Packet packet;
  packet.headers.bth.opcode = wire::opcode_of(wire::Service::Rc, op);
  packet.headers.bth.dest_qp = dest;
  packet.headers.bth.psn = wire::Psn(psn);
  packet.headers.bth.pad_count = wire::pad_for(payload.size());
  packet.payload.assign(payload.begin(), payload.end());
  return packet;
}

Packet make_ack(queue::Qpn dest, std::uint32_t psn, wire::Aeth aeth) {
  Packet packet = make_packet(wire::Op::Acknowledge, dest, psn);
  packet.headers.aeth = aeth;
  return packet;
}

ExactPair::ExactPair(const SideConfig& a_side, const SideConfig& b_side, const ConnectionConfig& connection)
    : a_engine(kPortA),
      b_engine(kPortB),
      a(a_engine, {address_of(1), kPortA}, a_side, 1),
      b(b_engine, {address_of(2), kPortB}, b_side, 2) {
  connect_both(now, a, b, connection);
}

std::vector<Packet> ExactPair::take(Side& from) {
  std::vector<Packet> packets;
  wire::OutDatagram out;
  while (from.engine().next_datagram(now, out)) {
    wire::seal(out, 0);
    const auto bytes = wire::to_bytes(out);
    const wire::Decoded decoded = wire::decode(bytes);
    if (!decoded) throw Failure(std::string("sent what does not decode: ") + wire::describe(decoded.error));
    const auto payload = decoded.packet.payload;
    packets.push_back({decoded.packet.headers, {payload.begin(), payload.end()}});
  }
  from.engine().on_sent();
  return packets;
}

void ExactPair::give(Side& to, const Packet& packet) {
  give_from(&to == &a ? b.endpoint() : a.endpoint(), to, packet);
}

void ExactPair::give_from(const wire::Endpoint& from, Side& to, const Packet& packet) {
  const auto bytes = to_sealed_bytes(packet, from, to.endpoint());
  to.engine().on_datagram(now, {bytes, from, to.endpoint()});
}

void ExactPair::give_bytes(Side& to, std::span<const std::byte> bytes) {
  to.engine().on_datagram(now, {bytes, (&to == &a ? b : a).endpoint(), to.endpoint()});
}

void ExactPair::carry_all() {
  for (int round = 0; round < kCarryRoundsMax; ++round) {
    const auto from_a = take(a);
    for (const Packet& packet : from_a) give(b, packet);
    const auto from_b = take(b);
    for (const Packet& packet : from_b) give(a, packet);
    if (from_a.empty() && from_b.empty()) return;
  }
  throw Failure("two queue pairs never fall silent");
}

void ExactPair::expire(Side& side) {
  const auto deadline = side.engine().next_deadline();
  if (!deadline) throw Failure("nothing is armed here");
  if (*deadline > now) now = *deadline;
  side.engine().on_deadline(now);
}

void ExactPair::wait(queue::Duration time) {
  now += time;
  a.engine().on_deadline(now);
  b.engine().on_deadline(now);
}

}  // namespace nicless::sim
