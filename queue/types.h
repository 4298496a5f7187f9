// SPDX-License-Identifier: MIT
// The vocabulary of the whole project: ids that do not convert into each other, and time as a value.
// Nothing here reads a clock: an Instant always comes in as an argument (see docs/ARCHITECTURE.md).
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>

namespace nicless::queue {

// A number that only equals, orders and hashes among its own kind. Thread-compatible, trivially copyable.
template <typename Tag, typename Rep = std::uint32_t>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  explicit constexpr StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(StrongId, StrongId) = default;

 private:
  Rep value_ = 0;
};

using Qpn = StrongId<struct QpnTag>;    // 24 bits; IBTA 9.2
using Srqn = StrongId<struct SrqnTag>;  // 24 bits; IBTA A14
using LKey = StrongId<struct LKeyTag>;  // local key of a memory region
using RKey = StrongId<struct RKeyTag>;  // remote key of a memory region
using PdId = StrongId<struct PdTag>;    // protection domain

// Duration and Instant count nanoseconds. The clock they belong to has no now(): wire/io reads the monotonic clock,
// tests count their own virtual time.
using Duration = std::chrono::nanoseconds;
struct EngineClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<EngineClock, Duration>;
  static constexpr bool is_steady = true;
};
using Instant = EngineClock::time_point;

// The next deadline of something made of parts is the earliest of theirs; nothing armed is nullopt.
constexpr std::optional<Instant> earliest(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a) return b;
  if (!b) return a;
  return *a < *b ? a : b;
}

}  // namespace nicless::queue

template <typename Tag, typename Rep>
struct std::hash<nicless::queue::StrongId<Tag, Rep>> {
  std::size_t operator()(nicless::queue::StrongId<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
