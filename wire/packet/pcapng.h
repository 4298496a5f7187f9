// SPDX-License-Identifier: MIT
// A capture file, block by block: pcapng (draft-ietf-opsawg-pcapng) with one interface of raw IP. No file and no clock:
// the blocks are appended to a buffer, and the caller writes that where it likes; a file that ends after any block is
// whole.
//
// Wireshark takes for RoCE v2 what goes to UDP port 4791, and ours goes to other ports. So each packet is shown behind
// IP and UDP headers made for it, with destination port 4791; the true ports stand in the packet's comment ("udp
// 40001>40002"). A source port below 4791, which Wireshark might take for another protocol's, is shown 0xc000 higher.
// As the ICRC covers the ports, a good one is computed anew; a bad one stays as it came, and so bad.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet/datagram.h"

namespace nicless::wire {

struct TracedDatagram {
  std::uint64_t unix_time_ns = 0;  // nanoseconds since 1970 UTC
  bool is_outbound = false;
  Endpoint from;
  Endpoint to;
  IpOptions ip{};                    // of a received datagram: as far as known
  std::span<const std::byte> bytes;  // UDP payload, sealed
};

// The blocks that begin a file: section header and interface description.
void append_pcapng_start(std::vector<std::byte>& out);

// One enhanced packet block.
void append_pcapng(const TracedDatagram& datagram, std::vector<std::byte>& out);

}  // namespace nicless::wire
