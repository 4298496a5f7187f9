// SPDX-License-Identifier: MIT
// Two reliable queue pairs, connected and ready to send.
//
//   Pair       through a World: packets travel by themselves, with the World's faults
//   ExactPair  by hand: the test takes each packet that one end sends and hands it to the other, or does not
//
// Thread-compatible.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include "tests/sim/side.h"
#include "tests/sim/world.h"
#include "wire/packet/packet.h"

namespace nicless::sim {

struct PairConfig {
  std::uint64_t seed = 1;
  wire::LinkConfig faults;
  SideConfig side;
  ConnectionConfig connection;
};

struct Pair {
  explicit Pair(const PairConfig& config = {});

  // Post and let the packets go.
  queue::Result<void> send_from_a(const queue::Wqe& wqe);
  queue::Result<void> send_from_b(const queue::Wqe& wqe);

  World world;
  Side a;
  Side b;
};

// A packet as a value: what a test compares and forges.
struct Packet {
  wire::Headers headers;
  std::vector<std::byte> payload;
  friend bool operator==(const Packet&, const Packet&) = default;
};
std::ostream& operator<<(std::ostream& out, const Packet& packet);

// RC packet values for one destination, in the fewest words; pad_count follows from the payload.
Packet make_packet(wire::Op op, queue::Qpn dest, std::uint32_t psn, std::span<const std::byte> payload = {});
Packet make_ack(queue::Qpn dest, std::uint32_t psn, wire::Aeth aeth);

struct ExactPair {
  explicit ExactPair(const SideConfig& side = {}, const ConnectionConfig& connection = {})
      : ExactPair(side, side, connection) {}
  ExactPair(const SideConfig& a_side, const SideConfig& b_side, const ConnectionConfig& connection);

  // All that a side wants to send now.
  std::vector<Packet> take(Side& from);
  // One packet, sealed and received: from the peer's address unless another is given.
  void give(Side& to, const Packet& packet);
  void give_from(const wire::Endpoint& from, Side& to, const Packet& packet);
  void give_bytes(Side& to, std::span<const std::byte> bytes);
  // Carries everything both ways until both are silent. Time stands still.
  void carry_all();
  // Lets the clock run to the side's deadline, which must exist, and lets it react.
  void expire(Side& side);
  void wait(queue::Duration time);  // the clock runs, and both sides' deadlines that have come are served

  wire::Engine a_engine;
  wire::Engine b_engine;
  queue::Instant now{std::chrono::seconds(1)};
  Side a;
  Side b;
};

}  // namespace nicless::sim
