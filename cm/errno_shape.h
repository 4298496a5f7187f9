// SPDX-License-Identifier: MIT
// The shapes in which the doors of librdmacm report failure, made in one place: -1 or NULL with errno set, and one
// sentence for the person at the terminal. Success leaves errno alone; no exception leaves the library.
#pragma once

#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "cm/cm_id.h"
#include "queue/result.h"

namespace nicless::cm {

// Says why once ("rdma_bind_addr: EADDRINUSE, ..."), sets errno.
void fail(const char* call, const queue::Error& error);

// For calls that wait for an event: not noexcept, as a program may cancel a thread that waits, and cancelling unwinds
// through these frames.
template <typename Body>
auto guarded_cancellable(const char* call, Body&& body) -> decltype(body()) {
  const int before = errno;
  try {
    auto result = body();
    if (result) {
      errno = before;
    } else {
      fail(call, result.error());
    }
    return result;
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return queue::Error{ENOMEM, {}};
  }
}

template <typename Body>
auto guarded(const char* call, Body&& body) noexcept -> decltype(body()) {
  return guarded_cancellable(call, std::forward<Body>(body));
}

// int rdma_*: 0, or -1 and errno.
template <typename Body>
int to_int(const char* call, Body&& body) noexcept {
  return guarded(call, std::forward<Body>(body)) ? 0 : -1;
}

template <typename Body>
int to_int_cancellable(const char* call, Body&& body) {
  return guarded_cancellable(call, std::forward<Body>(body)) ? 0 : -1;
}

// A pointer, or NULL and errno.
template <typename Body>
auto to_pointer(const char* call, Body&& body) noexcept {
  auto result = guarded(call, std::forward<Body>(body));
  return result ? *result : nullptr;
}

// int rdma_destroy_*(id, ...): NULL is EINVAL, an id from before a fork ENODEV; else what the body says.
template <typename Body>
int on_any_id(const char* call, rdma_cm_id* id, Body&& body) noexcept {
  return to_int(call, [&]() -> Result<void> {
    if (id == nullptr) return queue::error(EINVAL, "the id is NULL");
    CmId& ours = id_of(id);
    if (auto alive = check_alive(ours.generation, "rdma_cm_id"); !alive) return alive;
    return body(ours);
  });
}

// int rdma_*(id, ...): and an id whose event channel is gone is EBADF, as its descriptor would be in the kernel.
template <typename Body>
int on_id(const char* call, rdma_cm_id* id, Body&& body) noexcept {
  return on_any_id(call, id, [&](CmId& ours) -> Result<void> {
    if (ours.channel != nullptr) return body(ours);
    return queue::error(EBADF, "the id's event channel was destroyed; all that is left to do is to destroy the id");
  });
}

// The program's pointer gets what was made; a null pointer is EINVAL.
template <typename Out, typename Made>
Result<void> hand_out(Out** out, const Result<Made*>& made) {
  if (!made) return made.error();
  *out = *made;
  return {};
}

}  // namespace nicless::cm
