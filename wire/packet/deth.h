// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"

namespace nicless::wire {

// Datagram extended transport header, IBTA 9.3.2: Q_Key (4), reserved (1), source QP (3).
struct Deth {
  static constexpr std::size_t kSize = 8;
  std::uint32_t qkey = 0;
  queue::Qpn src_qp{};

  static Deth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const Deth&, const Deth&) = default;
};

}  // namespace nicless::wire
