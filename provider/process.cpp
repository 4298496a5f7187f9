// SPDX-License-Identifier: MIT
#include "provider/process.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>

#include "provider/private.h"

namespace nicless::provider {
namespace {

std::atomic<std::uint64_t> generation{1};
std::atomic<void (*)()> on_child_fork{nullptr};

void enter_child() {
  generation.fetch_add(1);
  if (void (*const react)() = on_child_fork.load()) react();
}

}  // namespace

std::uint64_t process_generation() {
  return generation.load(std::memory_order_relaxed);
}

void watch_forks(void (*on_child)()) {
  on_child_fork.store(on_child);
  static const int registered = pthread_atfork(nullptr, nullptr, enter_child);
  static_cast<void>(registered);  // ENOMEM: children are on their own
}

queue::Result<void> check_generation(std::uint64_t made_in) {
  if (made_in == process_generation()) return {};
  return queue::error(EIO, "this object was made before fork(2) and belongs to the parent; open the device anew here");
}

}  // namespace nicless::provider

extern "C" uint64_t nicless_process_generation(void) {
  return nicless::provider::process_generation();
}
