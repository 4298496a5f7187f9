// SPDX-License-Identifier: MIT
// A list of events behind a file descriptor that is readable exactly while the list is not empty: the common part of a
// completion channel, the asynchronous events of a context and an rdma_cm event channel. The descriptor is an eventfd,
// close-on-exec; a program may set O_NONBLOCK on it and hand it to poll, select or epoll. Thread-safe.
//
// Waiting behaves as read(2) on the kernel's own event files does, which is what programs are written for: EAGAIN under
// O_NONBLOCK, EINTR only from a signal handler without SA_RESTART, and a point where pthread_cancel takes effect.
// Programs destroy a channel while a thread of theirs still waits on it, or is about to (rping does both): the thread
// then sleeps for ever, as it does in the kernel, so the owner retires such a list, or abandons it, instead of
// destroying it.
#pragma once

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "queue/mutex.h"
#include "queue/result.h"

namespace nicless::queue {

// The descriptor's operations, made with raw system calls: read() and friends may be interposed by the program.
Result<int> open_event_fd();
void close_event_fd(int fd);
void raise_event_fd(int fd);  // makes it readable
void lower_event_fd(int fd);  // makes it not readable
bool is_nonblocking(int fd);
// Sleeps while `*word == seen`: 0 (then look again) or EINTR. A cancellation point.
int wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t seen);
void wake_waiters(const std::atomic<std::uint32_t>& word);

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
    pushes_.fetch_add(1);
    if (waiters_.load() > 0) wake_waiters(pushes_);
  }

  std::optional<Event> take() EXCLUDES(mutex_) {
    return take([](const Event&) {});
  }

  // on_taken runs before anybody can find the event gone: whoever destroys what the event names erases its events
  // first, and then waits for those that were taken.
  template <typename OnTaken>
  std::optional<Event> take(OnTaken&& on_taken) EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (events_.empty()) return std::nullopt;
    Event event = std::move(events_.front());
    events_.pop_front();
    if (events_.empty()) lower_event_fd(fd_);
    on_taken(event);
    return event;
  }

  // What calls await() does so inside a body, and touches the list nowhere else. No destructor marks the end: a
  // cancelled thread unwinds by the program's libgcc, and our own, linked in statically, could not go on from a cleanup
  // of ours. After a cancellation the list is therefore thought to be waited on for ever.
  template <typename Body>
  auto while_waiting(Body&& body) {
    waiters_.fetch_add(1);
    auto result = body();
    waiters_.fetch_sub(1);
    return result;
  }

  bool is_waited_on() const { return waiters_.load() > 0; }

  void close() { close_event_fd(fd_.exchange(-1)); }

  // Gives up the descriptor. Whoever waits sleeps on, so the list itself has to stay, and hangs where it can be found.
  void abandon() {
    close();
    next_abandoned_ = abandoned_.load();
    while (!abandoned_.compare_exchange_weak(next_abandoned_, this)) {
    }
  }

  // Blocks as the descriptor's flags say; the error is EAGAIN or EINTR.
  Result<Event> wait() EXCLUDES(mutex_) {
    return while_waiting([this]() -> Result<Event> {
      for (;;) {
        if (auto event = take()) return std::move(*event);
        if (int e = await()) return error(e, e == EAGAIN ? "no event is waiting" : "interrupted by a signal");
      }
    });
  }

  // The blocking half of wait(), for a body of while_waiting(): 0 when take() is worth a try, else EAGAIN or EINTR. A
  // cancelled thread unwinds from here through its callers, so a noexcept function must not stand between this and the
  // program: such doors loop over take() and await() themselves.
  int await() EXCLUDES(mutex_) {
    const std::uint32_t seen = pushes_.load();
    if (!empty()) return 0;
    if (is_nonblocking(fd_)) return EAGAIN;
    return wait_while_equal(pushes_, seen);
  }

  bool empty() const EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return events_.empty();
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
  std::atomic<int> fd_;
  mutable Mutex mutex_;
  std::deque<Event> events_ GUARDED_BY(mutex_);
  std::atomic<std::uint32_t> pushes_{0};   // changes with every push: what a waiter sleeps on
  std::atomic<std::uint32_t> waiters_{0};  // at least those in await()
  EventList* next_abandoned_ = nullptr;
  static inline std::atomic<EventList*> abandoned_{nullptr};
};

// Destroys what is nothing but a list `events` for the program, at once as far as descriptors go. Its memory stays
// until sixteen others have been retired: a thread that was between two calls when the list went still finds it, empty.
template <typename Owner>
void retire(Owner& owner) {
  constexpr std::size_t kKept = 16;
  static std::array<std::atomic<Owner*>, kKept> kept{};
  static std::atomic<std::size_t> next{0};
  owner.events.close();
  Owner* const oldest = kept[next.fetch_add(1) % kKept].exchange(&owner);
  if (oldest == nullptr) return;
  if (oldest->events.is_waited_on()) return oldest->events.abandon();
  delete oldest;
}

}  // namespace nicless::queue
