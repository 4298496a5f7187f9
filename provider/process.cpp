// SPDX-License-Identifier: MIT
#include "provider/process.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "provider/private.h"
#include "queue/check.h"

namespace nicless::provider {
namespace {

std::atomic<std::uint64_t> generation{1};
using Reaction = void (*)();
constexpr std::size_t kReactionsMax = 8;
std::array<std::atomic<Reaction>, kReactionsMax> reactions{};

void enter_child() {
  generation.fetch_add(1);
  for (const auto& slot : reactions) {
    if (const Reaction react = slot.load()) react();
  }
}

void remember(Reaction on_child) {
  for (auto& slot : reactions) {
    Reaction held = nullptr;
    if (slot.compare_exchange_strong(held, on_child) || held == on_child) return;
  }
  NICLESS_CHECK(!"more owners watch forks than there is room for");
}

}  // namespace

std::uint64_t process_generation() {
  return generation.load(std::memory_order_relaxed);
}

void watch_forks(void (*on_child)()) {
  remember(on_child);
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
