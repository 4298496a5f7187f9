// SPDX-License-Identifier: MIT
// The invariant CRC of RoCE v2: CRC-32 over the parts of IP, UDP and BTH headers that no router changes, and all that
// follows. IBTA 7.8.1 and A17.3.3. The kernel writes the IP header, so its fields are assumed as a datagram socket with
// don't-fragment fills them; see docs/WIRE.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/packet/datagram.h"

namespace nicless::wire {

// Computes the ICRC and writes it into the trailer. ip_id: the IPv4 identification the packet will carry: 0, or its
// index in a UDP_SEGMENT batch; not used with IPv6. Of payload that the program unmaps at this very moment the ICRC is
// wrong: the datagram counts as lost, and whoever builds it again finds out.
void seal(OutDatagram& datagram, std::uint16_t ip_id);

// Whether the last four bytes of a received datagram are its ICRC. Over IPv4 the id is not known to a socket: the
// packet is good if some 16-bit id makes it so, and that id is reported (docs/WIRE.md says why this is sound).
struct IcrcCheck {
  bool good = false;
  std::uint16_t ip_id = 0;
};
IcrcCheck check_icrc(const InDatagram& datagram);

// The ICRC that a datagram of at least BTH and ICRC should have, and how one is written into its last four bytes.
std::uint32_t compute_icrc(const InDatagram& datagram, std::uint16_t ip_id);
void store_icrc(std::uint32_t icrc, std::span<std::byte> out);

}  // namespace nicless::wire
