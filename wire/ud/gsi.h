// SPDX-License-Identifier: MIT
// The general services interface, QP 1: management datagrams of the connection manager, in UD packets. Two queues and
// no state machine; the machine is cm::Connection. IBTA 13.5, 12.6. Port-bound.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "wire/packet/datagram.h"

namespace nicless::wire {

inline constexpr std::size_t kMadBytes = 256;
inline constexpr std::uint32_t kGsiQkey = 0x80010000;
inline constexpr std::size_t kGsiInboxMax = 4096;  // arrived and not taken; more are dropped and counted

using MadBytes = std::array<std::byte, kMadBytes>;

struct Mad {
  Endpoint from;
  Endpoint to;
  IpOptions ip;
  MadBytes bytes{};
};

class Gsi {
 public:
  // What is no message of a connection manager's is dropped and counted.
  void on_packet(const PacketView& packet, const InDatagram& datagram);
  std::optional<Mad> take();  // the oldest that arrived
  bool has_arrivals() const { return !inbox_.empty(); }
  void post(const Mad& mad) { outbox_.push_back(mad); }
  bool next_datagram(OutDatagram& out);
  std::uint64_t dropped() const { return dropped_; }

 private:
  std::deque<Mad> inbox_;
  std::deque<Mad> outbox_;
  std::uint32_t next_psn_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace nicless::wire
