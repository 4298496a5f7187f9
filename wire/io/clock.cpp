// SPDX-License-Identifier: MIT
#include "wire/io/clock.h"

#include <time.h>

namespace nicless::wire {

queue::Instant now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return queue::Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

std::uint64_t wall_clock_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace nicless::wire
