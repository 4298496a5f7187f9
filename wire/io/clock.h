// SPDX-License-Identifier: MIT
// The clocks: the only place where real time becomes an Instant. Any thread.
#pragma once

#include <cstdint>

#include "queue/types.h"

namespace nicless::wire {

queue::Instant now();                    // monotonic
std::uint64_t wall_clock_nanoseconds();  // since 1970

}  // namespace nicless::wire
