// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nicless::wire {

// NAK codes, IBTA table 58 (9.7.5.2.8).
enum class NakCode : std::uint8_t {
  PsnSequenceError = 0,
  InvalidRequest = 1,
  RemoteAccessError = 2,
  RemoteOperationalError = 3,
  InvalidRdRequest = 4,
};

// ACK extended transport header, IBTA 9.3.5: syndrome (1) and MSN (3). The syndrome is ACK with a credit count, RNR NAK
// with a timer, or NAK with a code (table 57).
struct Aeth {
  static constexpr std::size_t kSize = 4;
  static constexpr std::uint8_t kCreditsInvalid = 31;  // the responder gives no end-to-end credits
  enum class Kind : std::uint8_t { Ack, Rnr, Reserved, Nak };

  std::uint8_t syndrome = 0;
  std::uint32_t msn = 0;  // 24 bits

  static Aeth ack(std::uint32_t msn) { return {kCreditsInvalid, msn}; }
  static Aeth rnr(std::uint8_t timer, std::uint32_t msn) {
    return {static_cast<std::uint8_t>(0x20 | (timer & 31)), msn};
  }
  static Aeth nak(NakCode code, std::uint32_t msn) {
    return {static_cast<std::uint8_t>(0x60 | static_cast<std::uint8_t>(code)), msn};
  }
  Kind kind() const { return static_cast<Kind>((syndrome >> 5) & 3); }
  std::uint8_t rnr_timer() const { return syndrome & 31; }
  NakCode nak_code() const { return static_cast<NakCode>(syndrome & 31); }

  static Aeth decode(std::span<const std::byte, kSize> in);
  void encode(std::span<std::byte, kSize> out) const;
  friend bool operator==(const Aeth&, const Aeth&) = default;
};

}  // namespace nicless::wire
