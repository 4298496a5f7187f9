// SPDX-License-Identifier: MIT
// The floor of ib_write_lat: what the kernel alone takes where the target of a message looks at its memory and makes no
// call. Two processes; in each a thread of its own receives, changes the memory and acknowledges, while the program
// spins on that memory, answers, and polls until its own message is acknowledged. Plain connected sockets.
//
//   raw_udp_write [--unpinned] [BYTES [ITERATIONS]]
//
// Prints the median half round trip in microseconds. BYTES is 96 by default: BTH, RETH, 64 bytes, ICRC. Each end has a
// core of its own, both its threads on it; --unpinned: the scheduler places them.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "tests/bench/loopback.h"

namespace nicless::bench {
namespace {

constexpr std::size_t kAckBytes = 20;
constexpr std::size_t kBytesMax = 4096;

// Whoever polls receives, and the thread only while nobody does: it is armed when a poll has found what it waited for.
class Target {
 public:
  Target(int fd, std::size_t bytes) : fd_(fd), bytes_(bytes), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    check(epoll_ >= 0, "epoll_create1");
    arm(EPOLL_CTL_ADD, EPOLLIN);
    std::thread([this] { serve(); }).detach();
  }

  void write() {
    arm(EPOLL_CTL_MOD, 0);
    send(bytes_);
    ++written_;
    while (acknowledged_.load() < written_) {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock) receive();
    }
    arm(EPOLL_CTL_MOD, EPOLLIN);
  }
  void await_write() {
    ++awaited_;
    while (memory_.load() < awaited_) {
    }
  }

 private:
  void serve() {
    for (epoll_event event;;) {
      if (epoll_wait(epoll_, &event, 1, -1) != 1) continue;
      const std::lock_guard lock(mutex_);
      receive();
    }
  }
  void receive() {
    std::array<char, kBytesMax> datagram;
    for (ssize_t got = 0; (got = recv(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT)) > 0;) {
      if (got == kAckBytes) {
        acknowledged_.fetch_add(1);
      } else {
        memory_.fetch_add(1);
        send(kAckBytes);
      }
    }
  }
  void send(std::size_t bytes) {
    static const std::array<char, kBytesMax> kZeros{};
    check(::send(fd_, kZeros.data(), bytes, 0) >= 0, "send");
  }
  void arm(int operation, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    check(epoll_ctl(epoll_, operation, fd_, &event) == 0, "epoll_ctl");
  }

  const int fd_;
  const std::size_t bytes_;
  const int epoll_;
  std::mutex mutex_;
  std::atomic<int> memory_{0};
  std::atomic<int> acknowledged_{0};
  int written_ = 0;
  int awaited_ = 0;
};

void run(Placement placement, std::size_t bytes, int iterations) {
  const int ours = bound_socket(SOCK_DGRAM);
  const int theirs = bound_socket(SOCK_DGRAM);
  connect_to(ours, theirs);
  connect_to(theirs, ours);
  // The threads live as long as the processes, which therefore end without clearing up.
  run_both(
      placement,
      [&] {
        auto* target = new Target(theirs, bytes);
        for (int i = 0; i < iterations; ++i) {
          target->await_write();
          target->write();
        }
        std::_Exit(0);
      },
      [&] {
        auto* target = new Target(ours, bytes);
        const double median = median_half_round_trip(iterations, [&] {
          target->write();
          target->await_write();
        });
        std::printf("half_round_trip_us %.3f\n", median * 1e6);
        std::fflush(stdout);
      });
  std::_Exit(0);
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  using namespace nicless::bench;
  Arguments arguments(argc, argv, "raw_udp_write [--unpinned] [BYTES [ITERATIONS]]");
  const auto placement = arguments.take("--unpinned") ? Placement::Scheduler : Placement::OneEachCore;
  const int bytes = std::min(arguments.number(96), static_cast<int>(kBytesMax));
  const int iterations = arguments.number(20000);
  arguments.expect_no_more();
  run(placement, static_cast<std::size_t>(bytes), iterations);
}
