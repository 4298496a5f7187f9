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

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

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

// Calls take(), which returns -1 and EAGAIN as long as there is nothing, until it has something, and returns that.
// Where take() does not block this spins, as programs that poll a completion queue do, and yields now and then, for
// where both ends share a core.
template <typename Take>
auto wait_for(bool is_blocking, Take take) {
  constexpr int kSpinsBeforeYield = 200;
  for (int spins = 0;; ++spins) {
    const auto got = take();
    if (got >= 0) return got;
    check((!is_blocking && errno == EAGAIN) || errno == EINTR, "recv");
    if (spins % kSpinsBeforeYield == kSpinsBeforeYield - 1) sched_yield();
  }
}

// The median of half of what each call of round_trip() takes, in seconds.
template <typename RoundTrip>
double median_half_round_trip(int iterations, RoundTrip round_trip) {
  std::vector<double> trips;
  trips.reserve(static_cast<std::size_t>(iterations));
  double start = now_seconds();
  for (int i = 0; i < iterations; ++i) {
    round_trip();
    const double end = now_seconds();
    trips.push_back(end - start);
    start = end;
  }
  const auto middle = trips.begin() + iterations / 2;
  std::nth_element(trips.begin(), middle, trips.end());
  return *middle / 2;
}

// A datagram from a non-blocking recv: its size.
inline std::size_t receive_spinning(int fd, void* into, std::size_t size) {
  return static_cast<std::size_t>(wait_for(false, [&] { return recv(fd, into, size, MSG_DONTWAIT); }));
}

enum class Placement { OneEachCore, SameCore, Scheduler };

// Runs `other` in a child process, `self` in this one, and waits for the child.
template <typename Other, typename Self>
void run_both(Placement placement, Other other, Self self) {
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (placement != Placement::Scheduler) pin(child == 0 && placement == Placement::OneEachCore);
  if (child == 0) {
    other();
    std::exit(0);
  }
  self();
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the other end");
}

// The words of a command line: options begin with two dashes, the others are numbers.
class Arguments {
 public:
  Arguments(int argc, char** argv, const char* usage) : words_(argv + 1, argv + argc), usage_(usage) {}

  // Whether the option is there; takes it out.
  bool take(std::string_view option) { return std::erase(words_, option) != 0; }
  // The next number, or the default. Call after all options are taken.
  int number(int otherwise) {
    if (words_.empty()) return otherwise;
    char* end = nullptr;
    const long value = std::strtol(std::string(words_.front()).c_str(), &end, 10);
    if (*end != '\0' || value <= 0) refuse();
    words_.erase(words_.begin());
    return static_cast<int>(value);
  }
  void expect_no_more() const {
    if (!words_.empty()) refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    std::fprintf(stderr, "usage: %s\n", usage_);
    std::exit(2);
  }
  std::vector<std::string_view> words_;
  const char* usage_;
};

}  // namespace nicless::bench
