// SPDX-License-Identifier: MIT
// The progress thread: serves the ports of programs that are not polling, meets deadlines, and gives its owner a turn
// for what is not the engine's (the connection manager). It sleeps while there is nothing to do, and keeps off a port
// that a program polls: an armed epoll beside a polling thread doubles the latency of that thread.
//
// It sleeps in one epoll_wait(2) for all sockets, its timer and wake(): each system call more between a datagram and
// its service is latency of programs that call nothing meanwhile (docs/adr/0013). Any thread may change the epoll set,
// so a socket can be unwatched and closed at once by whoever closes it.
//
// Thread-safe. Locks: its own is a leaf; ports' locks are taken with none held.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "queue/mutex.h"
#include "queue/result.h"
#include "wire/io/linger.h"
#include "wire/io/poller_habit.h"
#include "wire/io/udp_port.h"

struct epoll_event;

namespace nicless::wire {

// Whoever made the thread. Called on it, with no lock held.
class ProgressOwner {
 public:
  virtual ~ProgressOwner() = default;
  virtual void on_turn(UdpPort& port, const TurnReport& report) = 0;
  // Once a wake-up, after the ports. Returns when it wants to be called again.
  virtual std::optional<queue::Instant> on_wake(queue::Instant now) = 0;
  // What watch_links() was given is readable.
  virtual void on_link_change() {}
  // The system does not take a socket into the epoll set, as epoll_ctl(2) says: the thread looks at its port each
  // kPollerKeeps instead, until it does. Told once, on any thread.
  virtual void on_unwatchable(int /*errno_value*/) {}
};

class ProgressThread {
 public:
  // How long a port stays its poller's after the last poll.
  static constexpr queue::Duration kPollerKeeps = std::chrono::milliseconds(1);

  // Starts the thread, with all signals blocked. It never ends, so neither may this object or the owner. An errno where
  // the system gives no thread or descriptor.
  static queue::Result<ProgressThread*> start(ProgressOwner& owner);
  ~ProgressThread();  // of one whose thread could not start
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // From here on the thread serves this port. ENOMEM, ENOSPC as epoll_ctl(2).
  queue::Result<void> watch(const std::shared_ptr<UdpPort>& port) EXCLUDES(mutex_);
  // One more descriptor that wakes the thread for this port, which it serves already.
  queue::Result<void> watch_also(const std::shared_ptr<UdpPort>& port, int fd) EXCLUDES(mutex_);
  // The owner hears of it when this descriptor (a LinkWatch's) is readable; for good.
  queue::Result<void> watch_links(int fd);
  // The sockets may be closed once this has returned.
  void unwatch(const UdpPort& port) EXCLUDES(mutex_);
  void unwatch(int fd) EXCLUDES(mutex_);
  // The program will wait instead of polling: the thread takes the port back now. Cheap if it has it.
  void take_back(UdpPort& port) EXCLUDES(mutex_);
  // The poller of a port that has_poller_that_goes() goes: the same, until come_back(). Cheap if it has left already.
  void leave(UdpPort& port, queue::Instant now) EXCLUDES(mutex_);
  // It is back, and has marked the port as polled: the thread keeps off, until nobody has polled for kPollerKeeps.
  void come_back(UdpPort& port, queue::Instant now) EXCLUDES(mutex_);

  // One more turn of the thread, soon.
  void wake();
  // The same, but only if the thread would otherwise sleep past `deadline`.
  void wake_by(queue::Instant deadline) {
    if (deadline.time_since_epoch().count() < sleeps_until_.load()) wake();
  }

  bool is_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  static constexpr std::uint64_t kFirstPortId = 16;  // below: what else is in the epoll set
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Entry {
    std::shared_ptr<UdpPort> port;
    int fd = -1;
    std::uint64_t id = 0;
    bool is_watched = false;  // in the epoll set; else a poller has it
    bool is_main = true;      // else one of watch_also()
    PollerHabit habit{};      // of the main one
  };

  struct Descriptors {
    int epoll = -1;
    int timer = -1;
    int wake = -1;
  };
  static queue::Result<Descriptors> open();
  static void close(const Descriptors& fds);

  ProgressThread(ProgressOwner& owner, const Descriptors& fds);
  void run();
  void wait_and_serve();
  long wait(std::span<epoll_event> events);
  void serve(UdpPort& port, bool has_errors);
  // Deadlines, the owner's turn, ports to take back; then decides how long to sleep.
  void finish_wake();
  void meet_deadlines(queue::Instant now);
  std::optional<queue::Instant> take_back_unpolled(queue::Instant now) EXCLUDES(mutex_);
  std::optional<queue::Instant> find_unpolled(queue::Instant now) EXCLUDES(mutex_);
  TurnReport turn(UdpPort& port, queue::Instant now, bool has_errors);
  void note_waiting(const UdpPort& port) EXCLUDES(mutex_);
  void sleep_until(std::optional<queue::Instant> deadline);
  void give_to_thread(UdpPort& port) EXCLUDES(mutex_);
  void leave_to_poller(UdpPort& port, queue::Instant now) EXCLUDES(mutex_);
  // 0 or -errno; an entry that the system does not take stays one to take back, which find_unpolled() tries again.
  int set_watched(Entry& entry, bool is_watched) REQUIRES(mutex_);
  void tell_unwatchable(int failure) EXCLUDES(mutex_);
  std::vector<std::shared_ptr<UdpPort>> ports() EXCLUDES(mutex_);
  std::shared_ptr<UdpPort> find(std::uint64_t id) EXCLUDES(mutex_);

  ProgressOwner& owner_;
  const Descriptors fds_;
  // The thread's own: nobody else touches them.
  std::optional<queue::Instant> timer_at_;
  std::vector<std::shared_ptr<UdpPort>> unpolled_;
  std::atomic<bool> is_wake_posted_{false};
  std::atomic<bool> has_told_unwatchable_{false};
  std::atomic<std::int64_t> sleeps_until_{kNever};

  queue::Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  std::uint64_t next_id_ GUARDED_BY(mutex_) = kFirstPortId;
  std::thread thread_;
  Linger linger_;  // the thread's own, too
};

}  // namespace nicless::wire
