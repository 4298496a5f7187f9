// SPDX-License-Identifier: MIT
#include "provider/context.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

#include "provider/objects.h"
#include "provider/port_watch.h"
#include "provider/verbs_ops.h"

namespace nicless::provider {
namespace {

constexpr int kCompletionVectors = 1;

void release(Context& context) {
  if (context.holders.fetch_sub(1) != 1) return;
  forget_listener(context);
  if (context.async_events.is_waited_on()) {
    context.async_events.abandon();
    return;
  }
  delete &context;
}

}  // namespace

CommandFd::CommandFd() : fd(static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC))) {}

CommandFd::~CommandFd() {
  if (fd >= 0) syscall(SYS_close, fd);
}

Context& context_of(const ibv_context* context) {
  // verbs_context ends with the ibv_context; its private pointer is ours to use.
  const auto* bytes = reinterpret_cast<const std::byte*>(context) - offsetof(verbs_context, context);
  return *reinterpret_cast<Context*>(reinterpret_cast<const verbs_context*>(bytes)->priv);
}

ContextHold::~ContextHold() {
  release(context_);
}

Result<ibv_context*> open_device(ibv_device* device) {
  auto runtime = Runtime::current();
  if (!runtime) return runtime.error();
  auto async_fd = queue::open_event_fd();
  if (!async_fd) return async_fd.error();
  auto context = std::make_unique<Context>(**runtime, *async_fd);
  fill_ops(context->tables);
  context->tables.since_44.priv = reinterpret_cast<verbs_ex_private*>(context.get());
  ibv_context& verbs = *public_context(*context);
  verbs.device = device;
  verbs.cmd_fd = context->command_fd.fd;
  verbs.async_fd = context->async_events.fd();
  verbs.num_comp_vectors = kCompletionVectors;
  pthread_mutex_init(&verbs.mutex, nullptr);
  add_listener(*context);
  return public_context(*context.release());
}

Result<void> close_device(ibv_context* context) {
  release(context_of(context));
  return {};
}

}  // namespace nicless::provider
