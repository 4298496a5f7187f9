// SPDX-License-Identifier: MIT
// Which of many things is due next, found without asking them all. Everything takes logarithmic time, and changing a
// deadline allocates nothing. Thread-compatible.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "queue/types.h"

namespace nicless::queue {

template <typename Key>
class Deadlines {
 public:
  // Nothing: the key keeps its place, without a deadline.
  void set(const Key& key, std::optional<Instant> deadline) {
    const Instant at = deadline.value_or(kNone);
    const auto [known, is_new] = places_.try_emplace(key);
    if (is_new) {
      known->second = order_.emplace(at, key).first;
    } else if (known->second->first != at) {
      auto node = order_.extract(known->second);
      node.value().first = at;
      known->second = order_.insert(std::move(node)).position;
    }
  }
  void erase(const Key& key) {
    const auto known = places_.find(key);
    if (known == places_.end()) return;
    order_.erase(known->second);
    places_.erase(known);
  }

  std::optional<Instant> next() const {
    if (order_.empty() || order_.begin()->first == kNone) return std::nullopt;
    return order_.begin()->first;
  }
  // The key that has been due for longest; it stays so until it is set anew.
  std::optional<Key> due(Instant now) const {
    const auto deadline = next();
    return deadline && *deadline <= now ? std::optional(order_.begin()->second) : std::nullopt;
  }

 private:
  static constexpr Instant kNone = Instant::max();
  using Order = std::set<std::pair<Instant, Key>>;

  Order order_;  // those without a deadline at the end
  std::map<Key, typename Order::iterator> places_;
};

}  // namespace nicless::queue
