// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "queue/types.h"

namespace nicless::cm {

// Which of many things is due next. Keys order; everything takes logarithmic time. Thread-compatible.
template <typename Key>
class Deadlines {
 public:
  // Nothing: the key has none any more.
  void set(const Key& key, std::optional<queue::Instant> deadline) {
    const auto place = armed_.find(key);
    if (place != armed_.end()) {
      if (deadline == place->second) return;
      order_.erase({place->second, key});
      armed_.erase(place);
    }
    if (!deadline) return;
    armed_.emplace(key, *deadline);
    order_.insert({*deadline, key});
  }

  std::optional<queue::Instant> next() const {
    if (order_.empty()) return std::nullopt;
    return order_.begin()->first;
  }

  // The key that has been due for longest; it stays so until it is set anew.
  std::optional<Key> due(queue::Instant now) const {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    return order_.begin()->second;
  }

 private:
  std::map<Key, queue::Instant> armed_;
  std::set<std::pair<queue::Instant, Key>> order_;
};

}  // namespace nicless::cm
