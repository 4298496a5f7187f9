// SPDX-License-Identifier: MIT
// What the exact scripts share: an ExactPair with memory at both ends, and the shortest words for posting.
#pragma once

#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "tests/queue/print.h"
#include "tests/sim/pair.h"

namespace nicless::sim {

inline constexpr std::uint32_t kPsnA = 0x000100;  // ConnectionConfig's
inline constexpr std::uint32_t kPsnB = 0x000200;
inline constexpr std::size_t kMtu = 1024;
inline constexpr std::size_t kMemoryBytes = 64 * 1024;

struct Script : ExactPair {
  explicit Script(const ConnectionConfig& connection = {}, const SideConfig& side = {})
      : ExactPair(side, connection), source(a.make_buffer(kMemoryBytes)), target(b.make_buffer(kMemoryBytes)) {
    for (std::size_t i = 0; i < kMemoryBytes; ++i) source.bytes()[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  }

  queue::Wqe request(queue::SendOpcode opcode, std::uint64_t wr_id, std::size_t length) {
    queue::Wqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = opcode;
    wqe.remote_addr = target.address();
    wqe.rkey = target.rkey();
    wqe.imm_or_key = 0x04030201;
    sge = source.sge(0, length);
    if (length > 0) wqe.sges = {&sge, 1};
    return wqe;
  }
  void post(queue::SendOpcode opcode, std::uint64_t wr_id, std::size_t length) {
    REQUIRE(a.post_send(now, request(opcode, wr_id, length)));
  }
  void post_recv(std::uint64_t wr_id, std::size_t length, std::size_t offset = 0) {
    const queue::Sge list = target.sge(offset, length);
    REQUIRE(b.post_recv(wr_id, {&list, length > 0 ? 1u : 0u}));
  }
  // The bytes of A's memory that a message of this length, or a part of it, is made of.
  std::span<const std::byte> sent(std::size_t offset, std::size_t length) {
    return source.bytes().subspan(offset, length);
  }
  bool arrived(std::size_t length, std::size_t offset = 0) {
    const auto there = target.bytes().subspan(offset, length);
    return std::equal(there.begin(), there.end(), source.bytes().begin());
  }
  bool is_untouched(std::size_t from = 0) {
    const auto there = target.bytes().subspan(from);
    return std::all_of(there.begin(), there.end(), [](std::byte byte) { return byte == std::byte{0xa5}; });
  }
  // A packet of A's as it must be on the wire.
  Packet from_a(wire::Op op, std::uint32_t psn, bool wants_ack, std::span<const std::byte> payload = {}) {
    Packet packet = make_packet(op, b.qpn(), psn, payload);
    packet.headers.bth.ack_req = wants_ack;
    return packet;
  }
  Packet ack(std::uint32_t psn, std::uint32_t msn) { return make_ack(a.qpn(), psn, wire::Aeth::ack(msn)); }
  Packet nak(wire::NakCode code, std::uint32_t psn, std::uint32_t msn) {
    return make_ack(a.qpn(), psn, wire::Aeth::nak(code, msn));
  }
  void give_all(Side& to, const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) give(to, packet);
  }
  bool is_at_rest() {
    return a.send_queue().empty() && !a.engine().next_deadline() && !b.engine().next_deadline() && take(a).empty() &&
           take(b).empty();
  }

  Buffer source;  // A's
  Buffer target;  // B's
  queue::Sge sge;
};

// The same packets, whichever of them ask for an acknowledgement: after a loss the window is smaller, and more do.
inline std::vector<Packet> without_ack_req(std::vector<Packet> packets) {
  for (Packet& packet : packets) packet.headers.bth.ack_req = false;
  return packets;
}

// The asynchronous events that nobody took yet.
inline std::vector<queue::AsyncType> events_of(Side& side) {
  std::vector<queue::AsyncType> types;
  while (const auto event = side.async_events().take()) types.push_back(event->type);
  return types;
}

inline Wc sent_ok(std::uint64_t wr_id, queue::WcOpcode opcode = queue::WcOpcode::Send) {
  return {.wr_id = wr_id, .opcode = opcode};
}
inline Wc read_ok(std::uint64_t wr_id, std::uint32_t bytes) {
  return {.wr_id = wr_id, .opcode = queue::WcOpcode::RdmaRead, .byte_len = bytes};
}
inline Wc received(std::uint64_t wr_id, std::uint32_t bytes) {
  return {.wr_id = wr_id, .opcode = queue::WcOpcode::Recv, .byte_len = bytes};
}
inline Wc received_imm(std::uint64_t wr_id, std::uint32_t bytes, queue::WcOpcode opcode = queue::WcOpcode::Recv) {
  return {.wr_id = wr_id, .opcode = opcode, .byte_len = bytes, .flags = queue::kWcWithImm, .imm = 0x04030201};
}

}  // namespace nicless::sim
