// SPDX-License-Identifier: MIT
// Socket calls that no library can interpose: programs run with preloaded socket() and recv() replacements
// (librspreload), and our own traffic must not go through those. Each returns the value, or -errno, and leaves errno
// as it was: a verb that succeeds does not touch the program's errno.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <span>

namespace nicless::wire::raw {

template <typename... Args>
long call(long number, Args... args) {
  const int saved = errno;
  const long value = ::syscall(number, args...);
  if (value >= 0) return value;
  const int failure = errno;
  errno = saved;
  return -failure;
}

inline int socket(int family, int type, int protocol) {
  return static_cast<int>(call(SYS_socket, family, type, protocol));
}
inline int bind(int fd, const sockaddr* address, socklen_t bytes) {
  return static_cast<int>(call(SYS_bind, fd, address, bytes));
}
inline int setsockopt(int fd, int level, int name, int value) {
  return static_cast<int>(call(SYS_setsockopt, fd, level, name, &value, sizeof value));
}
template <typename T>
int setsockopt(int fd, int level, int name, const T& value) {
  return static_cast<int>(call(SYS_setsockopt, fd, level, name, &value, sizeof value));
}
inline int getsockopt(int fd, int level, int name, int& value) {
  socklen_t bytes = sizeof value;
  return static_cast<int>(call(SYS_getsockopt, fd, level, name, &value, &bytes));
}
inline int getsockname(int fd, sockaddr* address, socklen_t* bytes) {
  return static_cast<int>(call(SYS_getsockname, fd, address, bytes));
}
inline int sendmmsg(int fd, mmsghdr* messages, unsigned count) {
  return static_cast<int>(call(SYS_sendmmsg, fd, messages, count, MSG_DONTWAIT | MSG_NOSIGNAL));
}
inline int recvmmsg(int fd, mmsghdr* messages, unsigned count) {
  return static_cast<int>(call(SYS_recvmmsg, fd, messages, count, MSG_DONTWAIT, nullptr));
}
inline int recvmsg(int fd, msghdr* message, int flags) {
  return static_cast<int>(call(SYS_recvmsg, fd, message, flags));
}
// Less than a second.
inline int poll(std::span<pollfd> sockets, std::chrono::nanoseconds at_most) {
  timespec left{0, at_most.count()};  // the kernel writes there
  return static_cast<int>(call(SYS_ppoll, sockets.data(), sockets.size(), &left, nullptr, std::size_t{0}));
}
inline int close(int fd) {
  return static_cast<int>(call(SYS_close, fd));
}

}  // namespace nicless::wire::raw
