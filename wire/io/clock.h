// SPDX-License-Identifier: MIT
// The monotonic clock: the only place where real time becomes an Instant. Any thread.
#pragma once

#include "queue/types.h"

namespace nicless::wire {

queue::Instant now();

}  // namespace nicless::wire
