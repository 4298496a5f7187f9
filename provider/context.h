// SPDX-License-Identifier: MIT
// An open device: the tables that the inline functions of verbs.h jump through, and what its objects share. See
// ibv_open_device(3). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/device.h"
#include "provider/process.h"
#include "provider/runtime.h"
#include "provider/verbs65.h"
#include "queue/async_events.h"
#include "queue/memory_region.h"

namespace nicless::provider {

// What stands in ibv_context::cmd_fd: no device of a kernel's, but a descriptor that programs may duplicate or ask for
// its flags. -1 where none can be had.
struct CommandFd {
  CommandFd();
  ~CommandFd();
  CommandFd(const CommandFd&) = delete;
  CommandFd& operator=(const CommandFd&) = delete;
  const int fd;
};

struct Context {
  Context(Runtime& the_runtime, int async_fd)
      : runtime(the_runtime), generation(process_generation()), regions(random_u64()), async_events(async_fd) {}

  nicless_verbs_context tables{};
  Runtime& runtime;
  const std::uint64_t generation;
  queue::MrTable regions;
  queue::AsyncEvents async_events;
  const CommandFd command_fd;
  std::atomic<std::uint32_t> next_pd{1};
  // The handle of ibv_open_device and every object hold one: as the man page says, closing a device does not take
  // its objects away, so the context stays until the last of them is destroyed.
  std::atomic<std::uint32_t> holders{1};
};

Context& context_of(const ibv_context* context);

inline ibv_context* public_context(Context& context) {
  return &context.tables.since_44.context;
}

// An object's hold on its context.
class ContextHold {
 public:
  explicit ContextHold(Context& context) : context_(context) { context_.holders.fetch_add(1); }
  ~ContextHold();
  ContextHold(const ContextHold&) = delete;
  ContextHold& operator=(const ContextHold&) = delete;
  Context& operator*() const { return context_; }
  Context* operator->() const { return &context_; }
  // EIO in a forked child.
  Result<void> check_alive() const { return check_generation(context_.generation); }

 private:
  Context& context_;
};

}  // namespace nicless::provider
