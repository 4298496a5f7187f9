// SPDX-License-Identifier: MIT
// Storage for a queue's ring: zeroed memory that costs nothing until it is touched, so that a program which asks for
// the deepest queue and uses ten entries of it pays for ten. Thread-compatible; owns its memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "queue/check.h"

namespace nicless::queue {

// T starts as zero bytes, not as its default member initializers say: write an element before reading it.
template <typename T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t));

 public:
  // std::bad_alloc when the address space has no room for it.
  explicit LazyArray(std::size_t size) : data_(static_cast<T*>(std::calloc(size == 0 ? 1 : size, sizeof(T)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }

  T& operator[](std::size_t index) { return data_.get()[index]; }
  const T& operator[](std::size_t index) const { return data_.get()[index]; }
  T* at(std::size_t index) { return data_.get() + index; }
  const T* at(std::size_t index) const { return data_.get() + index; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace nicless::queue
