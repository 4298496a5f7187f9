// SPDX-License-Identifier: MIT
// A first-in, first-out ring that grows by doubling up to what was ever in it at once, and never shrinks: a queue with
// room for millions costs what it holds. No allocation once it has grown. Thread-compatible.
#pragma once

#include <cstddef>
#include <vector>

#include "queue/check.h"

namespace nicless::queue {

template <typename T>
class Ring {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // 0 is the oldest. index < size().
  const T& operator[](std::size_t index) const { return slots_[(head_ + index) & (slots_.size() - 1)]; }
  const T& front() const { return (*this)[0]; }

  void push_back(const T& value) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_) & (slots_.size() - 1)] = value;
    ++size_;
  }

  void pop_front() {
    NICLESS_DCHECK(size_ > 0);
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }

  // Keeps the order of what stays. `matches` is called once for each element, oldest first.
  template <typename Predicate>
  std::size_t erase_if(Predicate matches) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const T& value = (*this)[i];
      if (matches(value)) continue;
      if (kept != i) slots_[(head_ + kept) & (slots_.size() - 1)] = value;
      ++kept;
    }
    const std::size_t erased = size_ - kept;
    size_ = kept;
    return erased;
  }

 private:
  static constexpr std::size_t kSlotsMin = 16;

  void grow() {
    std::vector<T> larger(slots_.empty() ? kSlotsMin : slots_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two, or empty
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace nicless::queue
