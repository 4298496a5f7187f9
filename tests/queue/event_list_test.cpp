// SPDX-License-Identifier: MIT
// Goal: an event list's descriptor is readable exactly while the list has events, and waiting behaves as read(2) on the
// kernel's event files: O_NONBLOCK, EINTR, SA_RESTART, cancellation. Method: poll(2) the descriptor after each step;
// signals are sent only once /proc says that the waiting thread sleeps.
#include "queue/event_list.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>

#include "tests/queue/print.h"
#include "tests/support/asleep.h"

namespace nicless::queue {
namespace {

using Ints = EventList<int>;

bool is_readable(int fd) {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) == 1;
}

// A thread in wait(), and what came of it.
class Waiter {
 public:
  explicit Waiter(Ints& list) : list_(list) { pthread_create(&thread_, nullptr, run, this); }

  void until_asleep() {
    while (tid_.load() == 0 || !tests::is_asleep(tid_.load())) sched_yield();
  }
  void signal(int number) { pthread_kill(thread_, number); }
  void cancel() { pthread_cancel(thread_); }
  void* join() {
    void* value = nullptr;
    pthread_join(thread_, &value);
    return value;
  }
  int event() const { return event_; }
  int error() const { return error_; }

 private:
  static void* run(void* self_argument) {
    auto* self = static_cast<Waiter*>(self_argument);
    self->tid_ = static_cast<pid_t>(::syscall(SYS_gettid));
    auto result = self->list_.wait();
    if (result) {
      self->event_ = *result;
    } else {
      self->error_ = result.error().errno_value;
    }
    return nullptr;
  }

  Ints& list_;
  pthread_t thread_{};
  std::atomic<pid_t> tid_{0};
  int event_ = 0;
  int error_ = 0;
};

std::atomic<int> signals_seen{0};

void count_signals(int flags) {
  struct sigaction action {};
  action.sa_handler = [](int) { signals_seen.fetch_add(1); };
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
}

TEST_CASE("the descriptor is readable exactly while there are events", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  CHECK_FALSE(is_readable(list.fd()));
  list.push(1);
  CHECK(is_readable(list.fd()));
  list.push(2);
  CHECK(list.take() == 1);
  CHECK(is_readable(list.fd()));
  CHECK(list.take() == 2);
  CHECK_FALSE(is_readable(list.fd()));
  CHECK(list.take() == std::nullopt);
  list.push(3);
  CHECK(is_readable(list.fd()));
}

TEST_CASE("erasing events keeps the rest and lowers the descriptor with the last", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  for (int i = 1; i <= 4; ++i) list.push(i);
  CHECK(list.erase_if([](int i) { return i % 2 == 0; }) == 2);
  CHECK(is_readable(list.fd()));
  CHECK(list.take() == 1);
  CHECK(list.erase_if([](int i) { return i == 3; }) == 1);
  CHECK_FALSE(is_readable(list.fd()));
  CHECK(list.erase_if([](int) { return true; }) == 0);
  CHECK_FALSE(is_readable(list.fd()));
}

TEST_CASE("the descriptor does not survive exec and is closed with the list", "[queue][event_list]") {
  int fd = -1;
  {
    Ints list(open_event_fd().value());
    fd = list.fd();
    CHECK(::fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK(::fcntl(fd, F_GETFL) == O_RDWR);
  }
  CHECK(::fcntl(fd, F_GETFD) == -1);
}

TEST_CASE("a program that reads the descriptor itself does not make a later take hang", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  list.push(1);
  std::uint64_t count = 0;
  REQUIRE(::read(list.fd(), &count, sizeof(count)) == 8);
  CHECK(list.take() == 1);
  list.push(2);
  CHECK(is_readable(list.fd()));
}

TEST_CASE("waiting under O_NONBLOCK says EAGAIN, and takes what is there", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  ::fcntl(list.fd(), F_SETFL, O_NONBLOCK);
  CHECK(errno_of(list.wait()) == EAGAIN);
  list.push(7);
  CHECK(list.wait().value() == 7);
}

TEST_CASE("calls leave errno alone", "[queue][event_list]") {
  errno = 77;
  Ints list(open_event_fd().value());
  list.push(7);
  CHECK(list.wait().value() == 7);
  ::fcntl(list.fd(), F_SETFL, O_NONBLOCK);
  list.wait();
  CHECK(errno == 77);
}

TEST_CASE("a push wakes who waits", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  Waiter waiter(list);
  waiter.until_asleep();
  list.push(42);
  waiter.join();
  CHECK(waiter.event() == 42);
  CHECK_FALSE(is_readable(list.fd()));
}

TEST_CASE("a signal whose handler was set without SA_RESTART interrupts the wait", "[queue][event_list]") {
  count_signals(0);
  Ints list(open_event_fd().value());
  Waiter waiter(list);
  waiter.until_asleep();
  waiter.signal(SIGUSR1);
  waiter.join();
  CHECK(waiter.error() == EINTR);
}

TEST_CASE("a signal whose handler was set with SA_RESTART does not", "[queue][event_list]") {
  count_signals(SA_RESTART);
  const int before = signals_seen.load();
  Ints list(open_event_fd().value());
  Waiter waiter(list);
  waiter.until_asleep();
  waiter.signal(SIGUSR1);
  while (signals_seen.load() == before) sched_yield();
  waiter.until_asleep();
  list.push(42);
  waiter.join();
  CHECK(waiter.event() == 42);
  CHECK(waiter.error() == 0);
}

TEST_CASE("a waiting thread can be cancelled, and the list works on", "[queue][event_list]") {
  Ints list(open_event_fd().value());
  Waiter waiter(list);
  waiter.until_asleep();
  waiter.cancel();
  CHECK(waiter.join() == PTHREAD_CANCELED);
  list.push(1);
  CHECK(list.wait().value() == 1);
  Waiter next(list);
  next.until_asleep();
  list.push(2);
  next.join();
  CHECK(next.event() == 2);
}

// An owner as retire() wants it, that counts those of its kind that live.
struct Owner {
  Owner() : events(open_event_fd().value()) { ++living; }
  ~Owner() { --living; }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  Ints events;
  static inline int living = 0;
};

TEST_CASE("a retired list has closed its descriptor, and its memory goes when sixteen others have been retired") {
  auto* first = new Owner;
  const int fd = first->events.fd();
  retire(*first);
  CHECK(::fcntl(fd, F_GETFD) == -1);
  for (int i = 0; i < 100; ++i) retire(*new Owner);
  CHECK(Owner::living == 16);
}

}  // namespace
}  // namespace nicless::queue
