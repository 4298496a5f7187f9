// SPDX-License-Identifier: MIT
// A GID to and from the bytes in network order that structures of C and packets have for one. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/packet/endpoint.h"

namespace nicless::wire {

inline Gid from_raw(const std::uint8_t* raw) {
  Gid gid;
  std::memcpy(gid.bytes.data(), raw, gid.bytes.size());
  return gid;
}

inline Gid from_bytes(std::span<const std::byte, 16> address) {
  Gid gid;
  std::memcpy(gid.bytes.data(), address.data(), address.size());
  return gid;
}

inline Gid from_ipv4(std::span<const std::byte, 4> address) {
  Gid gid;
  std::memcpy(gid.bytes.data(), Gid::kMappedPrefix.data(), Gid::kMappedPrefix.size());
  std::memcpy(gid.bytes.data() + Gid::kMappedPrefix.size(), address.data(), address.size());
  return gid;
}

inline void to_raw(const Gid& gid, std::uint8_t* raw) {
  std::memcpy(raw, gid.bytes.data(), gid.bytes.size());
}

}  // namespace nicless::wire
