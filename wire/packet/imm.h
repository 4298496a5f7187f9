// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"

namespace nicless::wire {

// Immediate data, IBTA 9.3.6. Opaque to the transport: kept as the four bytes that ibv_send_wr.imm_data and
// ibv_wc.imm_data hold (network byte order), never swapped.
struct Imm {
  static constexpr std::size_t kSize = 4;
  std::uint32_t network_order = 0;

  static Imm decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const Imm&, const Imm&) = default;
};

// Invalidate extended transport header, IBTA 9.3.7: the R_Key to invalidate.
struct Ieth {
  static constexpr std::size_t kSize = 4;
  queue::RKey rkey{};

  static Ieth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const Ieth&, const Ieth&) = default;
};

}  // namespace nicless::wire
