// SPDX-License-Identifier: MIT
// The UDP port that packets come from in strict RoCE v2: it tells flows apart, so that networks and adapters spread
// them, and says nothing else. Linux' rules, so that both ends of a connection choose the same. IBTA A17.4.5.3 leaves
// it open. Pure functions.
#pragma once

#include <cstdint>

#include "queue/types.h"

namespace nicless::wire {

inline constexpr std::uint16_t kSourcePortFirst = 0xc000;  // and up: the dynamic ports
inline constexpr std::uint32_t kFlowLabelMask = 0xfffff;   // 20 bits

// rdma_flow_label_to_udp_sport() of <rdma/ib_verbs.h>.
constexpr std::uint16_t source_port_of(std::uint32_t flow_label) {
  const std::uint32_t label = flow_label & kFlowLabelMask;
  return static_cast<std::uint16_t>(kSourcePortFirst | ((label & 0x3fff) ^ (label >> 14)));
}

// A connection's: from the flow label, or without one from both numbers, whichever end asks. rdma_get_udp_sport().
constexpr std::uint16_t connection_source_port(std::uint32_t flow_label, queue::Qpn own, queue::Qpn peer) {
  if ((flow_label & kFlowLabelMask) != 0) return source_port_of(flow_label);
  std::uint64_t mix = std::uint64_t{own.value()} * peer.value();
  mix ^= mix >> 20;
  mix ^= mix >> 40;
  return source_port_of(static_cast<std::uint32_t>(mix & kFlowLabelMask));
}

// A datagram's: from the flow label as mlx5 has it, or without one from the sender's number as Soft-RoCE has it.
constexpr std::uint16_t datagram_source_port(std::uint32_t flow_label, queue::Qpn own) {
  if ((flow_label & kFlowLabelMask) != 0) return source_port_of(flow_label);
  constexpr std::uint32_t kGoldenRatio = 0x61c88647;  // hash_32_generic() of <linux/hash.h>, to 14 bits
  return static_cast<std::uint16_t>(kSourcePortFirst + (own.value() * kGoldenRatio >> 18));
}

}  // namespace nicless::wire
