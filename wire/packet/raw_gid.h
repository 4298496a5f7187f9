// SPDX-License-Identifier: MIT
// A GID to and from the 16 bytes in network order that structures of C have for one. Pure functions.
#pragma once

#include <cstdint>
#include <cstring>

#include "wire/packet/endpoint.h"

namespace nicless::wire {

inline Gid from_raw(const std::uint8_t* raw) {
  Gid gid;
  std::memcpy(gid.bytes.data(), raw, gid.bytes.size());
  return gid;
}

inline void to_raw(const Gid& gid, std::uint8_t* raw) {
  std::memcpy(raw, gid.bytes.data(), gid.bytes.size());
}

}  // namespace nicless::wire
