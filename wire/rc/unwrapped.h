// SPDX-License-Identifier: MIT
// PSNs as both halves of a reliable connection count them: without wrapping, in 64 bits, so that they can be compared.
#pragma once

#include <cstdint>

#include "wire/packet/psn.h"

namespace nicless::wire {

// The first one stays clear of zero, so that nothing an old packet says can go below it.
constexpr std::uint64_t first_unwrapped(std::uint32_t psn) {
  return (std::uint64_t{1} << 24) + (psn & Psn::kMask);
}

}  // namespace nicless::wire
