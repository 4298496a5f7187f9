// SPDX-License-Identifier: MIT
// A fuzzer's input, read front to back; zeros once it has ended. And what a fuzzer does when an invariant is broken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

namespace nicless::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  bool is_empty() const { return left_.empty(); }
  std::uint8_t u8() {
    if (left_.empty()) return 0;
    const std::uint8_t byte = left_.front();
    left_ = left_.subspan(1);
    return byte;
  }
  std::uint32_t u16() {
    const std::uint32_t low = u8();
    return low | std::uint32_t{u8()} << 8;
  }
  // At most so many: what is left.
  std::vector<std::byte> bytes(std::size_t count) {
    const auto taken = std::as_bytes(left_.first(std::min(count, left_.size())));
    left_ = left_.subspan(taken.size());
    return {taken.begin(), taken.end()};
  }

 private:
  std::span<const std::uint8_t> left_;
};

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace nicless::fuzz
