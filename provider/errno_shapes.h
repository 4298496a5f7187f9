// SPDX-License-Identifier: MIT
// How a Result becomes what the man pages promise: four shapes, one function each, and the sentence that says why. Only
// the doors (verbs_exports.cpp, verbs_ops.cpp, unsupported.cpp) use them. They are noexcept: bad_alloc becomes ENOMEM,
// anything else that is thrown is a bug of ours and ends the process. Success leaves errno alone.
#pragma once

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "queue/result.h"

namespace nicless::provider {

// The call as its sentence names it: "ibv_modify_qp" or "ibv_modify_qp qp 0x8f1203".
struct Call {
  Call(const char* call_name) : name(call_name) {}
  Call(const char* call_name, const ibv_qp* qp) : name(call_name), qpn(qp->qp_num) {}
  const char* name;
  std::optional<std::uint32_t> qpn{};
};

class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

// Says "nicless: ibv_modify_qp qp 0x8f1203: EINVAL, <why>" if the log wants to hear of failed calls. EAGAIN (the
// answer of a descriptor that does not block), EINTR (the program's own signal) and ENODATA (of a table's empty entry)
// are no failures: they are not said. Sets errno, and returns it.
int report(const Call& call, const queue::Error& error) noexcept;

// Runs f, which returns a Result. What f does to errno on its way is undone.
template <typename F>
auto guard(F&& f) noexcept -> decltype(f()) {
  const KeepErrno keep;
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    return queue::Error{ENOMEM, {}};
  }
}

// NULL, errno set: ibv_create_*, ibv_alloc_*, ibv_reg_*, ibv_open_device, ibv_get_device_list.
template <typename F>
auto null_and_errno(const Call& call, F&& f) noexcept -> typename decltype(f())::value_type {
  auto result = guard(std::forward<F>(f));
  if (result) return *result;
  errno = report(call, result.error());
  return nullptr;
}

// The errno value itself, and errno: ibv_modify_*, ibv_destroy_*, ibv_dealloc_*, ibv_dereg_*, ibv_query_*, ibv_post_*.
template <typename F>
int errno_itself(const Call& call, F&& f) noexcept {
  auto result = guard(std::forward<F>(f));
  return result ? 0 : report(call, result.error());
}

// -1, errno set: ibv_get_cq_event, ibv_get_async_event, ibv_query_gid, ibv_query_pkey, ibv_close_device.
template <typename F>
int minus_one_and_errno(const Call& call, F&& f) noexcept {
  auto result = guard(std::forward<F>(f));
  if (result) return 0;
  errno = report(call, result.error());
  return -1;
}

// The same for calls that may wait: not noexcept, as a program may cancel a thread that waits here, and cancelling
// unwinds through this frame. ibv_get_cq_event, ibv_get_async_event.
template <typename F>
int minus_one_and_errno_cancellable(const Call& call, F&& f) {
  auto result = [&]() -> decltype(f()) {
    try {
      return std::forward<F>(f)();
    } catch (const std::bad_alloc&) {
      return queue::Error{ENOMEM, {}};
    }
  }();
  if (result) return 0;
  errno = report(call, result.error());
  return -1;
}

// A number, or -1 with errno set: ibv_get_pkey_index.
template <typename F>
int number_or_minus_one(const Call& call, F&& f) noexcept {
  auto result = guard(std::forward<F>(f));
  if (result) return *result;
  errno = report(call, result.error());
  return -1;
}

// A count, or the errno value negated: ibv_query_gid_table.
template <typename F>
ssize_t count_or_negative(const Call& call, F&& f) noexcept {
  auto result = guard(std::forward<F>(f));
  return result ? static_cast<ssize_t>(*result) : -report(call, result.error());
}

}  // namespace nicless::provider
