// SPDX-License-Identifier: MIT
#include "wire/io/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <system_error>

#include "wire/io/clock.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::wire {

namespace {

constexpr std::size_t kReadyPerWakeMax = 32;
constexpr std::chrono::milliseconds kFar(200);
// Ids in the epoll set that are no port's: below kFirstPortId.
constexpr std::uint64_t kLinks = 0;
constexpr std::uint64_t kTimer = 1;
constexpr std::uint64_t kWake = 2;

int control(int epoll_fd, int operation, int fd, std::uint64_t id, std::uint32_t events = EPOLLIN) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return static_cast<int>(raw::call(SYS_epoll_ctl, epoll_fd, operation, fd, &event));
}

// The thread must not run a program's signal handlers.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

queue::Result<ProgressThread*> ProgressThread::start(ProgressOwner& owner) {
  const auto fds = open();
  if (!fds) return fds.error();
  auto thread = std::unique_ptr<ProgressThread>(new ProgressThread(owner, *fds));
  const SignalsBlocked blocked;
  try {
    thread->thread_ = std::thread([raw = thread.get()] { raw->run(); });
  } catch (const std::system_error& failure) {  // std::thread has no other way to say it
    close(*fds);
    return queue::error(failure.code().value(), std::string("the progress thread cannot start: ") + failure.what());
  }
  return thread.release();
}

queue::Result<ProgressThread::Descriptors> ProgressThread::open() {
  const Descriptors fds{
      static_cast<int>(raw::call(SYS_epoll_create1, EPOLL_CLOEXEC)),
      static_cast<int>(raw::call(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      static_cast<int>(raw::call(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK)),
  };
  int failure = std::min({fds.epoll, fds.timer, fds.wake});
  // Edges: neither has to be read to be quiet again.
  if (failure >= 0) failure = control(fds.epoll, EPOLL_CTL_ADD, fds.timer, kTimer, EPOLLIN | EPOLLET);
  if (failure >= 0) failure = control(fds.epoll, EPOLL_CTL_ADD, fds.wake, kWake, EPOLLIN | EPOLLET);
  if (failure >= 0) return fds;
  close(fds);
  return queue::error(-failure, "no descriptor is left for the progress thread");
}

void ProgressThread::close(const Descriptors& fds) {
  for (const int fd : {fds.epoll, fds.timer, fds.wake}) {
    if (fd >= 0) raw::close(fd);
  }
}

ProgressThread::ProgressThread(ProgressOwner& owner, const Descriptors& fds) : owner_(owner), fds_(fds) {}

ProgressThread::~ProgressThread() = default;

queue::Result<void> ProgressThread::watch(const std::shared_ptr<UdpPort>& port) {
  int fd = -1;
  {
    queue::MutexLock lock(port->mutex);
    fd = port->fd();
  }
  queue::MutexLock lock(mutex_);
  if (const int added = control(fds_.epoll, EPOLL_CTL_ADD, fd, next_id_); added < 0) {
    return queue::error(-added, "the socket cannot be watched");
  }
  entries_.push_back({port, fd, next_id_++, true, true});
  port->set_watched(true);
  return {};
}

queue::Result<void> ProgressThread::watch_links(int fd) {
  if (const int added = control(fds_.epoll, EPOLL_CTL_ADD, fd, kLinks); added < 0) {
    return queue::error(-added, "changes of network interfaces cannot be watched");
  }
  return {};
}

void ProgressThread::unwatch(const UdpPort& port) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.port.get() == &port) static_cast<void>(set_watched(entry, false));
  }
  std::erase_if(entries_, [&](const Entry& entry) { return entry.port.get() == &port; });
}

queue::Result<void> ProgressThread::watch_also(const std::shared_ptr<UdpPort>& port, int fd) {
  queue::MutexLock lock(mutex_);
  // A poller that has the port has this descriptor, too.
  const bool is_watched = port->is_watched();
  if (is_watched) {
    if (const int added = control(fds_.epoll, EPOLL_CTL_ADD, fd, next_id_); added < 0) {
      return queue::error(-added, "the socket cannot be watched");
    }
  }
  entries_.push_back({port, fd, next_id_++, is_watched, false});
  return {};
}

void ProgressThread::unwatch(int fd) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.fd == fd) static_cast<void>(set_watched(entry, false));
  }
  std::erase_if(entries_, [&](const Entry& entry) { return entry.fd == fd; });
}

void ProgressThread::take_back(UdpPort& port) {
  port.forget_left();  // it waits for events now: nobody is expected back
  give_to_thread(port);
}

void ProgressThread::give_to_thread(UdpPort& port) {
  port.forget_polled();
  if (port.is_watched()) return;
  int failure = 0;
  {
    queue::MutexLock lock(mutex_);
    for (Entry& entry : entries_) {
      if (entry.port.get() == &port) failure = std::min(failure, set_watched(entry, true));
    }
  }
  if (failure == 0) return;
  tell_unwatchable(failure);
  wake();  // to look at it from now on
}

void ProgressThread::leave(UdpPort& port, queue::Instant now) {
  if (port.is_left()) return;
  port.set_received_while_left(false);
  port.set_left(now);
  give_to_thread(port);
}

void ProgressThread::come_back(UdpPort& port, queue::Instant now) {
  leave_to_poller(port, now);
  wake_by(now + kPollerKeeps);  // to look whether it still polls
}

void ProgressThread::wake() {
  if (is_wake_posted_.exchange(true)) return;
  const std::uint64_t one = 1;
  // Nobody reads the counter, and it takes 2^64 of these.
  raw::call(SYS_write, fds_.wake, &one, sizeof one);
}

void ProgressThread::run() {
  pthread_setname_np(pthread_self(), "nicless");
  for (;;) {
    finish_wake();
    wait_and_serve();
  }
}

// Yields while it lingers: the program may want to answer on this very processor.
long ProgressThread::wait(std::span<epoll_event> events) {
  const auto look = [&](int milliseconds) {
    return raw::call(SYS_epoll_wait, fds_.epoll, events.data(), static_cast<int>(events.size()), milliseconds);
  };
  for (; linger_.is_on(); sched_yield()) {
    if (const long count = look(0); count != 0) return count;
    if (!linger_.on_nothing(now())) break;
  }
  return look(-1);
}

void ProgressThread::wait_and_serve() {
  std::array<epoll_event, kReadyPerWakeMax> events;
  const long count = wait(events);  // -EINTR, as after SIGCONT: none
  for (long i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    switch (event.data.u64) {
      case kLinks:
        owner_.on_link_change();
        break;
      case kTimer:
        timer_at_.reset();
        break;
      case kWake:
        is_wake_posted_.store(false);
        break;
      default:
        if (const auto port = find(event.data.u64)) serve(*port, (event.events & EPOLLERR) != 0);
    }
  }
}

void ProgressThread::serve(UdpPort& port, bool has_errors) {
  const queue::Instant started = now();
  if (port.is_polled_since(started - kPollerKeeps)) return leave_to_poller(port, started);
  const bool is_left = port.is_left();
  if (turn(port, started, has_errors).received == 0) return;
  // The poller that has left spins on its memory, maybe on this processor: a yield would give it all of a slice.
  if (is_left) return port.set_received_while_left(true);
  linger_.on_served(now());
}

TurnReport ProgressThread::turn(UdpPort& port, queue::Instant now, bool has_errors) {
  TurnReport report;
  {
    queue::MutexLock lock(port.mutex);
    if (has_errors) port.on_socket_error();
    report = port.turn(now);
  }
  owner_.on_turn(port, report);
  return report;
}

void ProgressThread::finish_wake() {
  const queue::Instant woken = now();
  meet_deadlines(woken);
  const auto owner_deadline = owner_.on_wake(woken);
  // From here on, whoever sets a deadline that the sums below may miss wakes the thread.
  sleeps_until_.store(kNever);
  auto deadline = queue::earliest(owner_deadline, take_back_unpolled(woken));
  for (const auto& port : ports()) {
    if (port->is_watched()) deadline = queue::earliest(deadline, port->next_deadline());
  }
  sleep_until(deadline);
}

void ProgressThread::meet_deadlines(queue::Instant now) {
  for (const auto& port : ports()) {
    const auto deadline = port->next_deadline();
    if (deadline && *deadline <= now && port->is_watched()) turn(*port, now, false);
  }
}

// Returns when to look again at ports that are still polled. What waits in the others has waited too long.
std::optional<queue::Instant> ProgressThread::take_back_unpolled(queue::Instant now) {
  const auto look_again = find_unpolled(now);
  for (const auto& port : unpolled_) {
    const TurnReport report = turn(*port, now, false);
    if (report.received != 0) note_waiting(*port);
    if (report.has_mads || report.has_unreachable) wake();  // the owner has had its turn already
  }
  unpolled_.clear();
  return look_again;
}

std::optional<queue::Instant> ProgressThread::find_unpolled(queue::Instant now) {
  std::optional<queue::Instant> look_again;
  int failure = 0;
  {
    queue::MutexLock lock(mutex_);
    for (Entry& entry : entries_) {
      const UdpPort& port = *entry.port;
      // A poller that has left is back soon, and wants to find the thread awake by then: it would have to wake it.
      if (entry.is_watched ? port.is_left_since(now - kPollerKeeps) : port.is_polled_since(now - kPollerKeeps)) {
        look_again = now + kPollerKeeps;
      } else if (!entry.is_watched) {
        failure = std::min(failure, set_watched(entry, true));
        if (entry.is_main) unpolled_.push_back(entry.port);
      }
    }
  }
  if (failure == 0) return look_again;
  tell_unwatchable(failure);
  return now + kPollerKeeps;
}

void ProgressThread::note_waiting(const UdpPort& port) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (!entry.is_main || entry.port.get() != &port) continue;
    entry.habit.on_found_waiting();
    entry.port->set_poller_goes(entry.habit.goes_away());
  }
}

// A timer that is set for an earlier time stays: deadlines move on with every datagram, and setting the timer costs
// more than one look too early. But a deadline that is far away and has moved far is one of a program that rests.
void ProgressThread::sleep_until(std::optional<queue::Instant> deadline) {
  const bool has_moved_on = deadline && timer_at_ && *deadline - *timer_at_ >= kFar && *timer_at_ - now() >= kFar;
  if (deadline && (!timer_at_ || *deadline < *timer_at_ || has_moved_on)) {
    timer_at_ = deadline;
    const auto at = std::max(deadline->time_since_epoch(), queue::Duration(1));  // zero would disarm it
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
    itimerspec timer{};
    timer.it_value = {seconds.count(), std::chrono::nanoseconds(at - seconds).count()};
    // It fails for a descriptor or a time that is none.
    raw::call(SYS_timerfd_settime, fds_.timer, TFD_TIMER_ABSTIME, &timer, nullptr);
  }
  sleeps_until_.store(timer_at_ ? timer_at_->time_since_epoch().count() : kNever);
}

void ProgressThread::leave_to_poller(UdpPort& port, queue::Instant now) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.port.get() != &port) continue;
    if (entry.is_main && port.is_left()) {
      port.forget_left();
      entry.habit.on_return(port.has_received_while_left());
      port.set_poller_goes(entry.habit.goes_away());
    }
    static_cast<void>(set_watched(entry, false));
    // take_back() forgets the poller first and then looks whether the port is watched; this goes the other way round,
    // so that one of the two sees the other. What fails here find_unpolled() finds within kPollerKeeps.
    if (!port.is_polled_since(now - kPollerKeeps)) static_cast<void>(set_watched(entry, true));
  }
}

int ProgressThread::set_watched(Entry& entry, bool is_watched) {
  if (entry.is_watched == is_watched) return 0;
  const int done = control(fds_.epoll, is_watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, entry.fd, entry.id);
  if (is_watched && done < 0) return done;
  // Only a descriptor that is not in the set cannot be taken out: that is as good.
  entry.is_watched = is_watched;
  if (entry.is_main) entry.port->set_watched(is_watched);
  return 0;
}

void ProgressThread::tell_unwatchable(int failure) {
  if (!has_told_unwatchable_.exchange(true)) owner_.on_unwatchable(-failure);
}

std::vector<std::shared_ptr<UdpPort>> ProgressThread::ports() {
  queue::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<UdpPort>> ports;
  ports.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    if (entry.is_main) ports.push_back(entry.port);
  }
  return ports;
}

std::shared_ptr<UdpPort> ProgressThread::find(std::uint64_t id) {
  queue::MutexLock lock(mutex_);
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.id == id; });
  return entry == entries_.end() ? nullptr : entry->port;
}

}  // namespace nicless::wire
