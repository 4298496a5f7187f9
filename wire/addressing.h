// SPDX-License-Identifier: MIT
// The one place that knows how a (GID, QPN) becomes an (address, UDP port), and what QPNs look like.
// Pure values; docs/adr has the reasons.
#pragma once

#include <cstdint>

#include "queue/types.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint32_t kQueuePairsPerPort = 256;
inline constexpr queue::Qpn kGsiQpn{1};

// By default a QPN carries the UDP port of the socket behind it: qpn = udp_port << 8 | index. So programs that tell
// each other only GID, QPN and PSN find each other without a registry.
class Addressing {
 public:
  static constexpr queue::Qpn make_qpn(std::uint16_t udp_port, std::uint8_t index) {
    return queue::Qpn((std::uint32_t{udp_port} << 8) | index);
  }
  // Where packets for a queue pair of another process go.
  static Endpoint destination(const Gid& gid, queue::Qpn qpn) {
    return Endpoint{gid, static_cast<std::uint16_t>(qpn.value() >> 8)};
  }
};

}  // namespace nicless::wire
