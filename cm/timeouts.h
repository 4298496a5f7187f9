// SPDX-License-Identifier: MIT
// The connection manager's times: five-bit codes on the wire, and how often a message is sent again. Values only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "queue/types.h"

namespace nicless::cm {

using queue::Duration;
using queue::Instant;

// 4.096 us * 2^code, the encoding of every timeout in a CM message. IBTA 12.7.
constexpr Duration wire_time(std::uint8_t code) {
  return Duration(std::int64_t{4096} << std::min<std::uint8_t>(code, 31));
}

inline constexpr std::uint8_t kResponseTimeout = 20;  // REQ: remote and local CM response timeout, 4.3 s
inline constexpr std::uint8_t kServiceTimeout = 24;   // MRA: the program may think for 69 s
inline constexpr std::uint8_t kMaxCmRetries = 15;
inline constexpr std::uint8_t kTargetAckDelay = 15;  // REP, and this end's share of the ACK timeout
inline constexpr std::uint8_t kPacketLifetime = 16;  // one way, 268 ms; Linux since 6.2 (18 before)

// The local ACK timeout that covers a round trip of 2 * lifetime and the responder's delay. Codes are powers of two:
// the larger wins, and one more where the smaller comes close. IBTA 12.7.34.
constexpr std::uint8_t ack_timeout(std::uint8_t ack_delay, std::uint8_t lifetime) {
  const int round_trip = lifetime + 1;
  const int combined = round_trip >= ack_delay ? round_trip + (ack_delay >= round_trip - 1 ? 1 : 0)
                                               : ack_delay + (round_trip >= ack_delay - 1 ? 1 : 0);
  return static_cast<std::uint8_t>(std::min(combined, 31));
}

inline constexpr Duration kTimewaitMax = wire_time(24);  // 69 s: the peer's ACK timeout may be anything

// Servers close their listener and listen again on the same port (perftest does, between its two connections), while
// the client is already asking for the next one. So after the first "nobody listens" the question is asked three times
// more, and believed when none has had an answer by then. By the clock and not by how often it is said: hosts limit how
// many ICMP messages they send to one peer (Linux: six at once, then one a second).
inline constexpr std::array<Duration, 3> kAskAgainAfter = {std::chrono::milliseconds(20), std::chrono::milliseconds(80),
                                                           std::chrono::milliseconds(200)};  // each after the last
inline constexpr Duration kLastAnswerWithin = std::chrono::milliseconds(100);

// When to send again, and when to give up. The standard waits the peer's response timeout and two packet lifetimes
// each time (4.8 s): right for a fabric that loses nothing. UDP loses datagrams, so the first ones go out sooner, twice
// as far apart each time; a duplicate does no harm (the peer repeats its answer, or says MRA).
struct Resend {
  static constexpr Duration kFirst = std::chrono::milliseconds(200);
  Instant deadline{};
  std::uint8_t left = 0;  // how often the message may still be sent

  static Resend start(Instant now, std::uint8_t retries) { return {.deadline = now + kFirst, .left = retries}; }
  // The next interval, given what the peer may take at most.
  void again(Instant now, Duration longest, std::uint8_t retries) {
    const int sent = retries - left;
    --left;
    deadline = now + std::min<Duration>(kFirst * (std::int64_t{2} << std::min(sent, 20)), longest);
  }
};

}  // namespace nicless::cm
