// SPDX-License-Identifier: MIT
// A small seeded generator (splitmix64, public domain algorithm by Sebastiano Vigna): the same seed, the same numbers,
// on every platform. Not for secrets: the runtime seeds it from the kernel so that keys are not guessable in practice.
// Thread-compatible.
#pragma once

#include <cstdint>

namespace nicless::queue {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next_u64() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint32_t next_u32() { return static_cast<std::uint32_t>(next_u64() >> 32); }
  // Uniform in [0, bound); bound > 0. The bias is below 2^-32 for the bounds used here.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((std::uint64_t{next_u32()} * bound) >> 32);
  }
  // True with the given probability, 0 to 1.
  bool chance(double probability) { return static_cast<double>(next_u64() >> 11) * 0x1p-53 < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace nicless::queue
