// SPDX-License-Identifier: MIT
// The device's clock, which stamps completions: ibv_create_cq_ex(3), ibv_query_rt_values_ex(3). It is the monotonic
// clock of the machine and counts nanoseconds. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "queue/result.h"

namespace nicless::provider {

inline constexpr std::uint64_t kDeviceClockKhz = 1'000'000;           // hca_core_clock
inline constexpr std::uint64_t kDeviceClockMask = ~std::uint64_t{0};  // completion_timestamp_mask: all 64 bits count

std::uint64_t device_clock();
// What to add to a value of device_clock() for nanoseconds since 1970, as things stand now.
std::uint64_t wall_clock_offset();

// As mlx5 has it: raw_clock.tv_nsec holds the whole value of the clock, and tv_sec is 0. EINVAL: something else is
// asked for.
queue::Result<void> query_rt_values(ibv_values_ex* values);

}  // namespace nicless::provider
