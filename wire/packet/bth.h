// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/types.h"
#include "wire/packet/psn.h"

namespace nicless::wire {

// Base transport header, IBTA 9.2.
//
//   byte 0        1                2..3   4         5..7     8            9..11
//   opcode   SE|M|pad|tver    P_Key   resv8a    dest QP  A|resv7      PSN
struct Bth {
  static constexpr std::size_t kSize = 12;
  std::uint8_t opcode = 0;
  bool solicited = false;
  bool mig_req = false;
  std::uint8_t pad_count = 0;
  std::uint8_t version = 0;
  std::uint16_t pkey = 0xffff;
  std::uint8_t reserved8a = 0;  // FECN, BECN: not covered by the ICRC
  queue::Qpn dest_qp{};
  bool ack_req = false;
  Psn psn{};

  static Bth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  // Writes another PSN and ack request into an encoded header.
  static void renumber(std::span<std::byte, kSize> encoded, Psn psn, bool ack_req);
  friend bool operator==(const Bth&, const Bth&) = default;
};

}  // namespace nicless::wire
