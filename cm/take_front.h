// SPDX-License-Identifier: MIT
// How the sans-IO machines hand out what they have to say: one thing a call, nothing when there is no more.
#pragma once

#include <deque>
#include <optional>
#include <utility>

namespace nicless::cm {

template <typename T>
std::optional<T> take_front(std::deque<T>& queue) {
  if (queue.empty()) return std::nullopt;
  T front = std::move(queue.front());
  queue.pop_front();
  return front;
}

}  // namespace nicless::cm
