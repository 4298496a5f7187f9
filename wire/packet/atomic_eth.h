// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"

namespace nicless::wire {

// Atomic extended transport header, IBTA 9.3.4: address (8), R_Key (4), swap or add (8), compare (8).
struct AtomicEth {
  static constexpr std::size_t kSize = 28;
  std::uint64_t address = 0;
  queue::RKey rkey{};
  std::uint64_t swap_add = 0;
  std::uint64_t compare = 0;

  static AtomicEth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

// Atomic ACK extended transport header, IBTA 9.5.3: what was at the address before.
struct AtomicAckEth {
  static constexpr std::size_t kSize = 8;
  std::uint64_t original = 0;

  static AtomicAckEth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

}  // namespace nicless::wire
