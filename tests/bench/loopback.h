// SPDX-License-Identifier: MIT
// What the raw-socket benchmarks share: sockets on 127.0.0.1, a forked other end, and a clock. Any failure ends the
// program with the name of the call: these are yardsticks, not products.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nicless::bench {

inline void check(bool is_good, const char* call) {
  if (is_good) return;
  std::fprintf(stderr, "%s: %s\n", call, std::strerror(errno));
  std::exit(1);
}

inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A socket bound to 127.0.0.1 and a port of the system's choice.
inline int bound_socket(int type) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  check(fd >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  return fd;
}

// Connects `fd` to where `peer` is bound.
inline void connect_to(int fd, int peer) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  check(getsockname(peer, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  check(connect(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0, "connect");
}

// Keeps this process on the first or last processor that it may use: an end shares its core with nobody where there are
// two. Left to the scheduler, two spinning ends on one core are ten times slower, in some runs and not in others.
inline void pin(bool is_last) {
  cpu_set_t allowed;
  check(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
  int chosen = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && (chosen < 0 || is_last)) chosen = cpu;
  }
  CPU_ZERO(&allowed);
  CPU_SET(chosen, &allowed);
  check(sched_setaffinity(0, sizeof allowed, &allowed) == 0, "sched_setaffinity");
}

// Spins on a non-blocking recv, as programs that poll a completion queue do; yields now and then, for where both ends
// share a core. The number of bytes received.
inline std::size_t receive_spinning(int fd, void* into, std::size_t size) {
  constexpr int kSpinsBeforeYield = 200;
  for (int spins = 0;; ++spins) {
    const ssize_t got = recv(fd, into, size, MSG_DONTWAIT);
    if (got >= 0) return static_cast<std::size_t>(got);
    check(errno == EAGAIN || errno == EINTR, "recv");
    if (spins % kSpinsBeforeYield == kSpinsBeforeYield - 1) sched_yield();
  }
}

enum class Placement { OneEachCore, Scheduler };

// Runs `other` in a child process, `self` in this one, and waits for the child.
template <typename Other, typename Self>
void run_both(Placement placement, Other other, Self self) {
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (placement == Placement::OneEachCore) pin(child == 0);
  if (child == 0) {
    other();
    std::exit(0);
  }
  self();
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the other end");
}

inline int argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::atoi(argv[index]) : otherwise;
}

}  // namespace nicless::bench
