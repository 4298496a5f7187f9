// SPDX-License-Identifier: MIT
// ibv_poll_cq and ibv_req_notify_cq: a program that polls is the engine; one that arms leaves it to the progress
// thread.
#include <fcntl.h>
#include <poll.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>

#include "provider/cq.h"
#include "provider/errno_shapes.h"
#include "provider/objects.h"
#include "provider/spin.h"
#include "wire/io/clock.h"
#include "wire/io/linger.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::provider {
namespace {

// After so many empty polls since the last ibv_req_notify_cq a program counts as polling. Programs that wait for
// events poll once or a few times after arming, before they sleep, and must not send the progress thread away by it.
constexpr std::uint32_t kEmptyPollsOfPoller = 32;
// How long a poll that sleeps does so at most.
constexpr queue::Duration kSleep = std::chrono::microseconds(50);
constexpr std::size_t kSocketsSleptOnMax = 8;

thread_local Spin spin;  // over all CQs that the thread polls
// A program's answer and the acknowledgement before it come from two threads, or from one and its system calls.
constexpr queue::Duration kStay = std::chrono::microseconds(10);
thread_local wire::Linger stay(kStay);

std::size_t sockets_of(Cq& cq, std::span<pollfd> sockets) {
  std::size_t count = 0;
  if (!cq.driving.try_lock()) return 0;
  for (const Cq::Feed& feed : cq.feeds) {
    if (count == sockets.size()) break;
    if (!feed.port->mutex.try_lock()) continue;
    sockets[count++] = {feed.port->fd(), POLLIN, 0};
    feed.port->mutex.unlock();
  }
  cq.driving.unlock();
  return count;
}

// For how long this thread has waited for a processor in its life: the second number of its schedstat. Zero where the
// kernel does not count.
queue::Duration waited_for_processor() {
  const int fd = static_cast<int>(wire::raw::call(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_CLOEXEC));
  std::array<char, 64> text{};
  long length = 0;
  if (fd >= 0) {
    length = wire::raw::call(SYS_read, fd, text.data(), text.size() - 1);
    wire::raw::close(fd);
  }
  if (length <= 0) return {};
  char* end = text.data();
  std::strtoull(end, &end, 10);
  return queue::Duration(static_cast<std::int64_t>(std::strtoull(end, &end, 10)));
}

// Whether a datagram ended it.
bool sleep_on_sockets(Cq& cq) {
  std::array<pollfd, kSocketsSleptOnMax> sockets{};
  const std::size_t count = sockets_of(cq, sockets);
  if (count == 0) {  // another thread is at work on all of them
    sched_yield();
    return false;
  }
  return wire::raw::poll(std::span(sockets).first(count), kSleep) > 0;
}

// Whether it has waited.
bool on_empty(Cq& cq, queue::Instant now) {
  const Spin::Wait wait = spin.on_empty(now);
  if (wait == Spin::Wait::None) return false;
  // Where the progress thread does part of the work it is the one that has the processor meanwhile: nothing to learn.
  const bool is_alone = !cq.has_poller_that_goes.load(std::memory_order_relaxed);
  if (wait == Spin::Wait::Yield || !is_alone) {
    const queue::Instant from = wire::now();
    sched_yield();
    const queue::Instant until = wire::now();
    spin.on_yielded(is_alone ? from : until, until);
    return true;
  }
  const bool can_learn = spin.can_learn();
  const queue::Duration before = can_learn ? waited_for_processor() : queue::Duration{};
  const bool has_datagram = sleep_on_sockets(cq);
  const queue::Duration after = can_learn ? waited_for_processor() : queue::Duration{};
  spin.on_slept(wire::now(), has_datagram, after - before);
  return true;
}

// One look at a port that its poller has left does not take it back from the progress thread: many programs poll until
// they find nothing more, and then go.
void mark_polled(Runtime& runtime, wire::UdpPort& port, queue::Instant now) {
  const bool is_left = port.is_left();
  if (is_left && !spin.is_spinning()) return;
  port.mark_polled(now);
  if (is_left) runtime.progress().come_back(port, now);
}

// After a poll that has found something.
void leave(Cq& cq) {
  if (!cq.driving.try_lock()) return;
  for (const Cq::Feed& feed : cq.feeds) {
    if (feed.port->has_poller_that_goes()) cq.context->runtime.progress().leave(*feed.port, wire::now());
  }
  cq.driving.unlock();
}

std::size_t drive_port(Runtime& runtime, wire::UdpPort& port, queue::Instant now, bool is_poller) {
  if (is_poller) mark_polled(runtime, port, now);
  if (!port.mutex.try_lock()) return 0;  // somebody else is the engine just now
  const wire::TurnReport report = port.turn(now);
  port.mutex.unlock();
  runtime.settle(port, report);
  return report.received;
}

// One turn of each port that feeds the CQ: how many datagrams arrived.
std::size_t drive(Cq& cq, queue::Instant now) {
  const std::uint32_t empty_polls = cq.empty_polls_since_armed.load(std::memory_order_relaxed);
  const bool is_poller = empty_polls > kEmptyPollsOfPoller;
  if (!is_poller) cq.empty_polls_since_armed.store(empty_polls + 1, std::memory_order_relaxed);
  if (!cq.driving.try_lock()) return 0;
  std::size_t received = 0;
  bool has_poller_that_goes = false;
  for (const Cq::Feed& feed : cq.feeds) {
    received += drive_port(cq.context->runtime, *feed.port, now, is_poller);
    has_poller_that_goes |= feed.port->has_poller_that_goes();
  }
  cq.has_poller_that_goes.store(has_poller_that_goes, std::memory_order_relaxed);
  cq.driving.unlock();
  return received;
}

// What the program polled for is here, and it is one that goes. Whether more comes right behind: in a ping-pong of
// writes the peer's next one follows its acknowledgement, and costs neither end the wake-up of a thread if it is waited
// for. With the acknowledgement in one turn it is there already.
bool has_more_behind(Cq& cq, std::size_t received) {
  if (received > 1) return true;
  stay.on_served(wire::now());
  while (stay.is_on()) {
    const queue::Instant now = wire::now();
    if (drive(cq, now) != 0) {
      stay.on_found();
      return true;
    }
    stay.on_nothing(now);
  }
  return false;
}

// What `take` finds in the CQ, at once or after one turn of its ports; after a wait it looks once more. Programs look
// for events next, and what came with an event, such as the last acknowledgement with a disconnect, must not be missed.
template <typename Take>
int find(Cq& cq, Take&& take) {
  int found = take();
  std::size_t received = 0;
  if (found == 0) {
    const queue::Instant now = wire::now();
    received = drive(cq, now);
    found = take();
    if (found == 0 && on_empty(cq, now)) {
      received = drive(cq, wire::now());
      found = take();
    }
  }
  if (found > 0) {
    spin.on_found();
    if (cq.has_poller_that_goes.load(std::memory_order_relaxed) && !has_more_behind(cq, received)) leave(cq);
  }
  return found;
}

void log_overrun(const Cq& cq) {
  report("ibv_poll_cq", overrun_error(cq));
}

void log_failures(Runtime& runtime, std::span<const ibv_wc> completions) {
  for (const ibv_wc& wc : completions) {
    if (wc.status != IBV_WC_SUCCESS) runtime.log_reasons(queue::Qpn(wc.qp_num));
  }
}

}  // namespace

int poll_cq(ibv_cq* verbs, int count, ibv_wc* wc) {
  Cq& cq = cq_of(verbs);
  if (cq.context->generation != process_generation()) return -1;
  if (count <= 0) return count == 0 ? 0 : -EINVAL;
  const std::span<ibv_wc> room(wc, static_cast<std::size_t>(count));
  const int found = find(cq, [&] { return cq.queue.poll(room); });
  if (found > 0) log_failures(cq.context->runtime, room.first(static_cast<std::size_t>(found)));
  if (found < 0) log_overrun(cq);
  return found;
}

int poll_one(Cq& cq, queue::Completion& out) {
  const int found = find(cq, [&] { return cq.queue.poll(out); });
  if (found < 0) log_overrun(cq);
  return found;
}

Result<void> req_notify_cq(ibv_cq* verbs, bool solicited_only) {
  Cq& cq = cq_of(verbs);
  if (auto alive = cq.context.check_alive(); !alive) return alive;
  if (cq.queue.is_overrun()) return overrun_error(cq);  // no event would ever come
  cq.queue.arm(solicited_only);
  cq.empty_polls_since_armed.store(0, std::memory_order_relaxed);
  queue::MutexLock lock(cq.driving);
  for (const Cq::Feed& feed : cq.feeds) cq.context->runtime.progress().take_back(*feed.port);
  return {};
}

}  // namespace nicless::provider
