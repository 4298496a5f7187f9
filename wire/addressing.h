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
  static constexpr Addressing port_in_qpn() { return Addressing(false); }
  // As RoCE v2 has it: everything on UDP port 4791, and numbers say nothing.
  static constexpr Addressing strict() { return Addressing(true); }

  constexpr bool is_strict() const { return is_strict_; }
  constexpr std::uint32_t queue_pairs_per_port() const {
    return is_strict_ ? kStrictQueuePairsMax : kQueuePairsPerPort;
  }

  constexpr queue::Qpn qpn(std::uint16_t udp_port, std::uint32_t index) const {
    return queue::Qpn(is_strict_ ? kStrictQpnFirst + index : (std::uint32_t{udp_port} << 8) | index);
  }
  // The index of a number of this port's; nothing for any other.
  constexpr std::optional<std::uint32_t> index(std::uint16_t udp_port, queue::Qpn qpn) const {
    if (!is_strict_) return qpn.value() >> 8 == udp_port ? std::optional(qpn.value() & 0xff) : std::nullopt;
    const bool is_ours = qpn.value() >= kStrictQpnFirst && qpn.value() < kStrictQpnFirst + kStrictQueuePairsMax;
    return is_ours ? std::optional(qpn.value() - kStrictQpnFirst) : std::nullopt;
  }
  // Where packets for a queue pair of another process go.
  constexpr std::uint16_t udp_port_of(queue::Qpn qpn) const {
    return is_strict_ || qpn == kMulticastQpn ? kRoceUdpPort : static_cast<std::uint16_t>(qpn.value() >> 8);
  }
  // Where packets come from, given the port that the queue pair would choose (wire/qp/source_port.h).
  constexpr std::uint16_t source_port(std::uint16_t udp_port, std::uint16_t wanted) const {
    return is_strict_ && wanted != 0 ? wanted : udp_port;
  }

  // Where answers to management datagrams go, whichever port those came from; nothing: to that one.
  constexpr std::optional<std::uint16_t> answers_port() const {
    return is_strict_ ? std::optional(kRoceUdpPort) : std::nullopt;
  }

 private:
  static constexpr std::uint32_t kQueuePairsPerPort = 256;
  static constexpr std::uint32_t kStrictQueuePairsMax = 65536;
  static constexpr std::uint32_t kStrictQpnFirst =
      0x11;  // below are special numbers, IBTA 3.5.10; rdma_rxe begins here
  explicit constexpr Addressing(bool is_strict) : is_strict_(is_strict) {}
  bool is_strict_;
};

}  // namespace nicless::wire
