// SPDX-License-Identifier: MIT
#include "queue/event_list.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NICLESS_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define NICLESS_ASAN
#endif
#ifdef NICLESS_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace nicless::queue {
namespace {

// A cancelled thread leaves its frames without returning from them. AddressSanitizer has to hear of that before, or it
// takes what is left of them on the stack for overflows.
void forgo_stack_checks() {
#ifdef NICLESS_ASAN
  __asan_handle_no_return();
#endif
}

// What a caller sees of errno is the façade's business; these calls leave it alone.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int saved_;
};

}  // namespace

Result<int> open_event_fd() {
  const KeepErrno keep;
  const long fd = ::syscall(SYS_eventfd2, 0, EFD_CLOEXEC);
  if (fd >= 0) return static_cast<int>(fd);
  const int e = errno;
  return error(e, std::string("no descriptor for events: ") + std::strerror(e) +
                      (e == EMFILE ? "; ulimit -n raises the limit" : ""));
}

void close_event_fd(int fd) {
  const KeepErrno keep;
  if (fd >= 0) ::syscall(SYS_close, fd);
}

void raise_event_fd(int fd) {
  const KeepErrno keep;
  const std::uint64_t one = 1;
  // A program that has closed the descriptor behind our back hears no more of it; else this fails at 2^64.
  ::syscall(SYS_write, fd, &one, sizeof(one));
}

// The counter is above 0 here unless the program read the descriptor itself, and then a plain read would block with the
// list's lock held: hence the call that never does. Before kernel 5.8 an eventfd does not know it.
void lower_event_fd(int fd) {
  const KeepErrno keep;
  std::uint64_t count = 0;
  iovec buffer{.iov_base = &count, .iov_len = sizeof(count)};
  const long read = ::syscall(SYS_preadv2, fd, &buffer, 1, -1L, -1L, RWF_NOWAIT);
  if (read < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) ::syscall(SYS_read, fd, &count, sizeof(count));
}

bool is_nonblocking(int fd) {
  const KeepErrno keep;
  const long flags = ::syscall(SYS_fcntl, fd, F_GETFL);
  return flags >= 0 && (flags & O_NONBLOCK) != 0;
}

// A futex wait is restarted after a signal exactly when read(2) would be, unlike poll. syscall(2) is no cancellation
// point, so cancellation is made immediate for the length of the call, as the C library does for its own; nothing is
// held here that a cancelled thread would leave behind.
int wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  int cancel_type = 0;
  const int saved_errno = errno;
  forgo_stack_checks();
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &cancel_type);
  const long woken = ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  const int e = woken < 0 ? errno : 0;
  pthread_setcanceltype(cancel_type, nullptr);
  errno = saved_errno;
  return e == EINTR ? EINTR : 0;
}

void wake_waiters(const std::atomic<std::uint32_t>& word) {
  const KeepErrno keep;
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace nicless::queue
