// SPDX-License-Identifier: MIT
#include "wire/io/progress_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <system_error>

#include "wire/io/clock.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::wire {

namespace {

constexpr std::size_t kReadyPerWakeMax = 32;
constexpr std::uint64_t kLinks = 0;  // no port's id

int control(int epoll_fd, int operation, int fd, std::uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
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

struct ProgressThread::Reactor {
  explicit Reactor(int watch_fd) : sockets(io, watch_fd), timer(io) {}
  boost::asio::io_context io{1};
  boost::asio::posix::stream_descriptor sockets;
  boost::asio::steady_timer timer;
};

queue::Result<ProgressThread*> ProgressThread::start(ProgressOwner& owner) {
  const int watch_fd = static_cast<int>(raw::call(SYS_epoll_create1, EPOLL_CLOEXEC));
  if (watch_fd < 0) return queue::error(-watch_fd, "no descriptor is left for the progress thread");
  try {
    auto thread = std::unique_ptr<ProgressThread>(new ProgressThread(owner, watch_fd));
    const SignalsBlocked blocked;
    thread->thread_ = std::thread([raw = thread.get()] { raw->run(); });
    return thread.release();
  } catch (const std::system_error& failure) {  // Asio's constructors and std::thread have no other way to say it
    raw::close(watch_fd);
    return queue::error(failure.code().value(), std::string("the progress thread cannot start: ") + failure.what());
  }
}

ProgressThread::ProgressThread(ProgressOwner& owner, int watch_fd)
    : owner_(owner), watch_fd_(watch_fd), reactor_(std::make_unique<Reactor>(watch_fd)) {}

ProgressThread::~ProgressThread() = default;

queue::Result<void> ProgressThread::watch(const std::shared_ptr<UdpPort>& port) {
  int fd = -1;
  {
    queue::MutexLock lock(port->mutex);
    fd = port->fd();
  }
  queue::MutexLock lock(mutex_);
  if (const int added = control(watch_fd_, EPOLL_CTL_ADD, fd, next_id_); added < 0) {
    return queue::error(-added, "the socket cannot be watched");
  }
  entries_.push_back({port, fd, next_id_++, true, true});
  port->set_watched(true);
  return {};
}

queue::Result<void> ProgressThread::watch_links(int fd) {
  if (const int added = control(watch_fd_, EPOLL_CTL_ADD, fd, kLinks); added < 0) {
    return queue::error(-added, "changes of network interfaces cannot be watched");
  }
  return {};
}

void ProgressThread::unwatch(const UdpPort& port) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.port.get() == &port) set_watched(entry, false);
  }
  std::erase_if(entries_, [&](const Entry& entry) { return entry.port.get() == &port; });
}

queue::Result<void> ProgressThread::watch_also(const std::shared_ptr<UdpPort>& port, int fd) {
  queue::MutexLock lock(mutex_);
  // A poller that has the port has this descriptor, too.
  const bool is_watched = port->is_watched();
  if (is_watched) {
    if (const int added = control(watch_fd_, EPOLL_CTL_ADD, fd, next_id_); added < 0) {
      return queue::error(-added, "the socket cannot be watched");
    }
  }
  entries_.push_back({port, fd, next_id_++, is_watched, false});
  return {};
}

void ProgressThread::unwatch(int fd) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.fd == fd && entry.is_watched) control(watch_fd_, EPOLL_CTL_DEL, fd, entry.id);
  }
  std::erase_if(entries_, [&](const Entry& entry) { return entry.fd == fd; });
}

void ProgressThread::take_back(UdpPort& port) {
  port.forget_polled();
  if (port.is_watched()) return;
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.port.get() == &port) set_watched(entry, true);
  }
}

void ProgressThread::wake() {
  if (is_wake_posted_.exchange(true)) return;
  boost::asio::post(reactor_->io, [this] {
    is_wake_posted_.store(false);
    finish_wake();
  });
}

void ProgressThread::run() {
  pthread_setname_np(pthread_self(), "nicless");
  wait_for_sockets();
  finish_wake();
  reactor_->io.run();
}

void ProgressThread::wait_for_sockets() {
  reactor_->sockets.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                               [this](const boost::system::error_code& failed) {
                                 if (failed) return;
                                 serve_ready();
                                 finish_wake();
                                 wait_for_sockets();
                               });
}

void ProgressThread::serve_ready() {
  std::array<epoll_event, kReadyPerWakeMax> events;
  const long count = raw::call(SYS_epoll_wait, watch_fd_, events.data(), static_cast<int>(events.size()), 0);
  for (long i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kLinks) {
      owner_.on_link_change();
    } else if (const auto port = find(event.data.u64)) {
      serve(*port, (event.events & EPOLLERR) != 0);
    }
  }
}

void ProgressThread::serve(UdpPort& port, bool has_errors) {
  const queue::Instant started = now();
  if (port.is_polled_since(started - kPollerKeeps)) return leave_to_poller(port);
  TurnReport report;
  {
    queue::MutexLock lock(port.mutex);
    if (has_errors) port.on_socket_error();
    report = port.turn(started);
  }
  owner_.on_turn(port, report);
}

void ProgressThread::finish_wake() {
  const queue::Instant woken = now();
  meet_deadlines(woken);
  const auto owner_deadline = owner_.on_wake(woken);
  // From here on, whoever sets a deadline that the sums below may miss wakes the thread.
  sleeps_until_.store(kNever);
  auto deadline = queue::earliest(owner_deadline, take_back_unpolled(woken));
  for (const auto& port : ports()) deadline = queue::earliest(deadline, port->next_deadline());
  sleep_until(deadline);
}

void ProgressThread::meet_deadlines(queue::Instant now) {
  for (const auto& port : ports()) {
    const auto deadline = port->next_deadline();
    if (!deadline || *deadline > now) continue;
    TurnReport report;
    {
      queue::MutexLock lock(port->mutex);
      report = port->turn(now);
    }
    owner_.on_turn(*port, report);
  }
}

// Returns when to look again at ports that are still polled.
std::optional<queue::Instant> ProgressThread::take_back_unpolled(queue::Instant now) {
  std::optional<queue::Instant> look_again;
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.is_watched) continue;
    if (entry.port->is_polled_since(now - kPollerKeeps)) {
      look_again = now + kPollerKeeps;
    } else {
      set_watched(entry, true);
    }
  }
  return look_again;
}

void ProgressThread::sleep_until(std::optional<queue::Instant> deadline) {
  sleeps_until_.store(deadline ? deadline->time_since_epoch().count() : kNever);
  if (deadline == timer_at_) return;
  timer_at_ = deadline;
  if (!deadline) {
    reactor_->timer.cancel();
    return;
  }
  reactor_->timer.expires_at(std::chrono::steady_clock::time_point(deadline->time_since_epoch()));
  reactor_->timer.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    timer_at_.reset();
    finish_wake();
  });
}

void ProgressThread::leave_to_poller(UdpPort& port) {
  queue::MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.port.get() != &port) continue;
    set_watched(entry, false);
    // take_back() forgets the poller first and then looks whether the port is watched; this goes the other way round,
    // so that one of the two sees the other.
    if (!port.is_polled_since(now() - kPollerKeeps)) set_watched(entry, true);
  }
}

void ProgressThread::set_watched(Entry& entry, bool is_watched) {
  if (entry.is_watched == is_watched) return;
  entry.is_watched = is_watched;
  control(watch_fd_, is_watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, entry.fd, entry.id);
  entry.port->set_watched(is_watched);
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
