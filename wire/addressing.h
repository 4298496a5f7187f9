// SPDX-License-Identifier: MIT
// The one place that knows how a (GID, QPN) becomes an (address, UDP port), and what QPNs look like.
// Pure values; docs/adr has the reasons.
#pragma once

#include <cstdint>
#include <optional>

#include "queue/types.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr queue::Qpn kGsiQpn{1};
inline constexpr queue::Qpn kMulticastQpn{0xffffff};  // all queue pairs that are attached to the group; IBTA 10.5.1

// The numbers of the queue pairs behind one UDP port, and the UDP port behind a peer's number. A value that the engine
// of a port holds; queue pairs know addresses only.
class Addressing {
 public:
  // A QPN carries the UDP port of the socket behind it: qpn = udp_port << 8 | index. So programs that tell each other
  // only GID, QPN and PSN find each other without a registry.
  static constexpr Addressing port_in_qpn() { return Addressing(std::nullopt); }
  // As RoCE v2 has it: everything on UDP port 4791, and numbers say nothing. They begin anywhere between two limits: a
  // process that begins at random does not take up the numbers of one that was there before it, whose peers may still
  // believe in them.
  static constexpr std::uint32_t kStrictQpnFirst = 0x11;  // below are special ones, IBTA 3.5.10; rdma_rxe begins here
  static constexpr std::uint32_t kStrictQpnFirstMax = 0xff0000 - 1;
  static constexpr Addressing strict(std::uint32_t first = kStrictQpnFirst) { return Addressing(first); }

  constexpr bool is_strict() const { return first_.has_value(); }
  constexpr std::uint32_t queue_pairs_per_port() const {
    return is_strict() ? kStrictQueuePairsMax : kQueuePairsPerPort;
  }

  constexpr queue::Qpn qpn(std::uint16_t udp_port, std::uint32_t index) const {
    return queue::Qpn(first_ ? *first_ + index : (std::uint32_t{udp_port} << 8) | index);
  }
  // The index of a number of this port's; nothing for any other.
  constexpr std::optional<std::uint32_t> index(std::uint16_t udp_port, queue::Qpn qpn) const {
    if (!first_) return qpn.value() >> 8 == udp_port ? std::optional(qpn.value() & 0xff) : std::nullopt;
    const bool is_ours = qpn.value() >= *first_ && qpn.value() - *first_ < kStrictQueuePairsMax;
    return is_ours ? std::optional(qpn.value() - *first_) : std::nullopt;
  }
  // Where packets for a queue pair of another process go.
  constexpr std::uint16_t udp_port_of(queue::Qpn qpn) const {
    return is_strict() || qpn == kMulticastQpn ? kRoceUdpPort : static_cast<std::uint16_t>(qpn.value() >> 8);
  }
  // Where packets come from, given the port that the queue pair would choose (wire/qp/source_port.h).
  constexpr std::uint16_t source_port(std::uint16_t udp_port, std::uint16_t wanted) const {
    return is_strict() && wanted != 0 ? wanted : udp_port;
  }

  // Where answers to management datagrams go, whichever port those came from; nothing: to that one.
  constexpr std::optional<std::uint16_t> answers_port() const {
    return is_strict() ? std::optional(kRoceUdpPort) : std::nullopt;
  }

 private:
  static constexpr std::uint32_t kQueuePairsPerPort = 256;
  static constexpr std::uint32_t kStrictQueuePairsMax = 65536;
  explicit constexpr Addressing(std::optional<std::uint32_t> first) : first_(first) {}
  std::optional<std::uint32_t> first_;  // of strict mode's numbers
};

}  // namespace nicless::wire
