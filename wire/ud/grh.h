// SPDX-License-Identifier: MIT
// The 40 bytes that stand before the payload of a received datagram: the global routing header, or what RoCE v2 puts in
// its place. IBTA 8.3, A17.4.3 and ibv_create_ah_from_wc(3).
#pragma once

#include <array>
#include <cstddef>

#include "wire/packet/datagram.h"

namespace nicless::wire {

inline constexpr std::size_t kGrhBytes = 40;

// Over IPv6: the IPv6 header. Over IPv4: 20 zeros, then the IPv4 header with a valid checksum. The socket keeps the
// real header to itself, so fields it does not tell (id, flow label) have their usual values.
std::array<std::byte, kGrhBytes> make_grh(const InDatagram& datagram);

}  // namespace nicless::wire
