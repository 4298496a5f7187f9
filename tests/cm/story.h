// SPDX-License-Identifier: MIT
// What an id may hear, given what it has heard and what its program has done: the oracle of the simulation and of the
// fuzzers. Values only.
#pragma once

#include <optional>

#include "cm/connection.h"

namespace nicless::cm::test {

struct Story {
  bool is_active = false;
  // What the program has done.
  bool has_accepted = false;
  bool has_established = false;
  bool has_rejected = false;
  bool has_disconnected = false;
  std::optional<ConnectionEvent> last;  // heard

  template <typename Event>
  bool is_last() const {
    return last && std::holds_alternative<Event>(*last);
  }

  // Takes note of it. False: the event may not follow.
  bool hear(const ConnectionEvent& event) {
    const bool is_possible = !has_rejected && std::visit([this](const auto& next) { return may_follow(next); }, event);
    last = event;
    return is_possible;
  }

 private:
  bool may_follow(const Replied&) const { return is_active && !last; }
  bool may_follow(const BecameEstablished&) const { return !is_active && !last && has_accepted; }
  bool may_follow(const Unreachable&) const { return !last && (is_active || has_accepted); }
  bool may_follow(const Rejected&) const { return !last || (is_last<Replied>() && !has_established); }
  bool may_follow(const Disconnected&) const {
    if (!last) return has_accepted && has_disconnected;
    return is_last<Replied>() || is_last<BecameEstablished>();
  }
  bool may_follow(const TimewaitExited&) const { return is_last<Disconnected>() || is_last<Rejected>(); }
};

}  // namespace nicless::cm::test
