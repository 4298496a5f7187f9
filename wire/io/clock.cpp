// SPDX-License-Identifier: MIT
#include "wire/io/clock.h"

#include <time.h>

namespace nicless::wire {

queue::Instant now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return queue::Instant(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace nicless::wire
