// SPDX-License-Identifier: MIT
// Packet sequence numbers: 24 bits that wrap, IBTA 9.7.1. Two of them have no order, only a distance; windows hold
// unwrapped 64-bit numbers, whose low 24 bits are the PSN.
#pragma once

#include <cstdint>

namespace nicless::wire {

class Psn {
 public:
  static constexpr std::uint32_t kMask = 0xffffff;
  constexpr Psn() = default;
  explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}
  static constexpr Psn of(std::uint64_t unwrapped) { return Psn(static_cast<std::uint32_t>(unwrapped & kMask)); }
  constexpr std::uint32_t value() const { return value_; }
  friend constexpr bool operator==(Psn, Psn) = default;

 private:
  std::uint32_t value_ = 0;
};

// How far `to` is ahead of `from`: -2^23 <= distance < 2^23; negative is behind.
constexpr std::int32_t distance(Psn from, Psn to) {
  const std::uint32_t ahead = (to.value() - from.value()) & Psn::kMask;
  return ahead < 0x800000 ? static_cast<std::int32_t>(ahead) : static_cast<std::int32_t>(ahead) - 0x1000000;
}

// The unwrapped number nearest to `reference` whose PSN is `psn`. May be negative near the start of a connection, hence
// signed; windows start at 2^24 plus the initial PSN to stay clear of zero.
constexpr std::int64_t unwrap(std::int64_t reference, Psn psn) {
  return reference + distance(Psn::of(static_cast<std::uint64_t>(reference)), psn);
}

}  // namespace nicless::wire
