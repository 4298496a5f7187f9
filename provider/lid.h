// SPDX-License-Identifier: MIT
// LIDs, for programs that know InfiniBand only and tell each other no GID (qperf, many a first example of verbs). RoCE
// has none, and an adapter refuses addresses without a GRH. Where NICLESS_LIDS=1 asks for it, a port has the lower half
// of its IPv4 address as its LID, and a LID of a peer is the lower half of an address that begins like one's own: so it
// serves one host, or a network of a /16. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "provider/device.h"
#include "wire/packet/endpoint.h"

namespace nicless::provider {

// NICLESS_LIDS, read once: 1 is yes; unset, empty and 0 are no. Anything else: no, and a sentence.
bool has_lids();

// Of the first IPv4 address in the table; 0, which is no LID, without one or where there are no LIDs.
std::uint16_t lid_of(const Device& device);

struct LidPath {
  wire::Gid local;
  wire::Gid remote;
};
// Nothing where there are no LIDs, for LID 0, and without an IPv4 address.
std::optional<LidPath> path_to_lid(const Device& device, std::uint16_t lid);

}  // namespace nicless::provider
