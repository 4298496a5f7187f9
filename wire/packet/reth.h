// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"

namespace nicless::wire {

// RDMA extended transport header, IBTA 9.3.3: virtual address (8), R_Key (4), DMA length (4).
struct Reth {
  static constexpr std::size_t kSize = 16;
  std::uint64_t address = 0;
  queue::RKey rkey{};
  std::uint32_t length = 0;

  static Reth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const Reth&, const Reth&) = default;
};

}  // namespace nicless::wire
