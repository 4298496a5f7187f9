// SPDX-License-Identifier: MIT
// The process as fork(2) sees it: objects made before a fork are dead in the child, which has neither the threads nor
// the right to the sockets they need; the parent is undisturbed. A child that opens a device anew gets an engine of its
// own. docs/adr has the reasons. Any thread.
#pragma once

#include <cstdint>

#include "queue/result.h"

namespace nicless::provider {

// Another number in each child. From the first call of watch_forks() on.
std::uint64_t process_generation();

// Each owner of a lock or an object that a child must make anew calls this once it has some; again does no harm.
// on_child must be async-signal-safe: it runs in the child, before fork returns, in the order of the first calls.
void watch_forks(void (*on_child)());

// EIO if what was made in `generation` is dead here.
queue::Result<void> check_generation(std::uint64_t generation);

}  // namespace nicless::provider
