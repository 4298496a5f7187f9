// SPDX-License-Identifier: MIT
#include "provider/rt_values.h"

#include <cerrno>

#include "wire/io/clock.h"

namespace nicless::provider {

std::uint64_t device_clock() {
  const auto since_start = wire::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_start).count());
}

std::uint64_t wall_clock_offset() {
  return wire::wall_clock_nanoseconds() - device_clock();
}

queue::Result<void> query_rt_values(ibv_values_ex* values) {
  if ((values->comp_mask & ~std::uint32_t{IBV_VALUES_MASK_RAW_CLOCK}) != 0) {
    return queue::error(EINVAL, "comp_mask has bits beyond IBV_VALUES_MASK_RAW_CLOCK");
  }
  if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) != 0) {
    values->raw_clock = {0, static_cast<long>(device_clock())};
  }
  return {};
}

}  // namespace nicless::provider
