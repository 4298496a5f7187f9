// SPDX-License-Identifier: MIT
// A list of events behind a file descriptor that is readable exactly while the list is not empty: the common part of a
// completion channel, the asynchronous events of a context and an rdma_cm event channel. The descriptor is an eventfd,
// close-on-exec; a program may set O_NONBLOCK on it and hand it to poll, select or epoll. Thread-safe.
#pragma once

#include <cerrno>
#include <deque>
#include <functional>
#include <optional>

#include "queue/mutex.h"
#include "queue/result.h"

namespace nicless::queue {

// The descriptor's three operations, made with raw system calls: read() and friends may be interposed by the program.
Result<int> open_event_fd();
void close_event_fd(int fd);
void raise_event_fd(int fd);  // makes it readable
void lower_event_fd(int fd);  // makes it not readable; only while it is
// Waits until readable. 0, or an errno: EAGAIN if the descriptor is O_NONBLOCK and there is nothing, EINTR.
int wait_event_fd(int fd);

template <typename Event>
class EventList {
 public:
  explicit EventList(int fd) : fd_(fd) {}
  ~EventList() { close_event_fd(fd_); }
  EventList(const EventList&) = delete;
  EventList& operator=(const EventList&) = delete;

  int fd() const { return fd_; }

  void push(Event event) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
    if (events_.size() == 1) raise_event_fd(fd_);
  }

  std::optional<Event> take() EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (events_.empty()) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    if (events_.empty()) lower_event_fd(fd_);
    return event;
  }

  // Blocks as the descriptor's flags say; the error is EAGAIN or EINTR.
  Result<Event> wait() EXCLUDES(mutex_) {
    for (;;) {
      if (auto event = take()) return std::move(*event);
      if (int e = wait_event_fd(fd_)) return error(e, e == EAGAIN ? "no event is waiting" : "interrupted by a signal");
    }
  }

  // Forgets what matches: events of an object that is being destroyed. Returns how many.
  std::size_t erase_if(const std::function<bool(const Event&)>& matches) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const bool was_empty = events_.empty();
    const std::size_t erased = std::erase_if(events_, matches);
    if (!was_empty && events_.empty()) lower_event_fd(fd_);
    return erased;
  }

 private:
  const int fd_;
  Mutex mutex_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace nicless::queue
