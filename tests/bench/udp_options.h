// SPDX-License-Identifier: MIT
// Socket options of the UDP yardsticks.
#pragma once

#include <sys/socket.h>

#include "tests/bench/loopback.h"
#include "wire/io/udp_options.h"

namespace nicless::bench {

inline void set_option(int fd, int level, int name, int value) {
  check(setsockopt(fd, level, name, &value, sizeof value) == 0, "setsockopt");
}

// As nicless does: asks for more than any default limit, and takes what net.core.rmem_max and wmem_max allow.
inline void raise_buffers(int fd) {
  constexpr int kSocketBufferBytes = 8 << 20;
  set_option(fd, SOL_SOCKET, SO_RCVBUF, kSocketBufferBytes);
  set_option(fd, SOL_SOCKET, SO_SNDBUF, kSocketBufferBytes);
}

// What the receive buffer of a socket holds; the kernel counts a datagram with its overhead.
inline int receive_buffer_bytes(int fd) {
  int granted = 0;
  socklen_t size = sizeof granted;
  check(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &size) == 0, "getsockopt");
  return granted;
}

}  // namespace nicless::bench
