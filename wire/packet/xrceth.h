// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"

namespace nicless::wire {

// XRC extended transport header, IBTA A14: reserved (1), XRC SRQ number (3).
struct XrcEth {
  static constexpr std::size_t kSize = 4;
  queue::Srqn srqn{};

  static XrcEth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const XrcEth&, const XrcEth&) = default;
};

}  // namespace nicless::wire
