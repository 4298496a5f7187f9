// SPDX-License-Identifier: MIT
// ibv_poll_cq and ibv_req_notify_cq: a program that polls is the engine; one that arms leaves it to the progress
// thread.
#include <sched.h>

#include <cerrno>
#include <span>
#include <string>

#include "provider/cq.h"
#include "provider/errno_shapes.h"
#include "provider/objects.h"
#include "wire/io/clock.h"

namespace nicless::provider {
namespace {

// After so many empty polls since the last ibv_req_notify_cq a program counts as polling. Programs that wait for
// events poll once or a few times after arming, before they sleep, and must not send the progress thread away by it.
constexpr std::uint32_t kEmptyPollsOfPoller = 32;
// A thread that has found nothing for so long yields the processor at each further poll: its peer may need it. Yielding
// earlier costs as much where there are processors for both.
constexpr queue::Duration kSpin = std::chrono::microseconds(50);

// Of this thread, over all CQs that it polls.
struct Spin {
  queue::Instant since;  // the first empty poll of a row; zero: none
  queue::Instant last;
};
thread_local Spin spin;

void on_empty(queue::Instant now) {
  // A thread that does other work between polls is not spinning.
  const bool is_first = spin.since == queue::Instant{} || now - spin.last > kSpin;
  if (is_first) spin.since = now;
  spin.last = now;
  if (now - spin.since > kSpin) sched_yield();
}

bool drive_port(Runtime& runtime, wire::UdpPort& port, queue::Instant now, bool is_poller) {
  if (is_poller) port.mark_polled(now);
  if (!port.mutex.try_lock()) return false;  // somebody else is the engine just now
  const wire::TurnReport report = port.turn(now, wire::UdpPort::By::Program);
  port.mutex.unlock();
  runtime.settle(port, report);
  return report.received != 0;
}

// One turn of each port that feeds the CQ; whether anything arrived.
bool drive(Cq& cq, queue::Instant now) {
  const std::uint32_t empty_polls = cq.empty_polls_since_armed.load(std::memory_order_relaxed);
  const bool is_poller = empty_polls > kEmptyPollsOfPoller;
  if (!is_poller) cq.empty_polls_since_armed.store(empty_polls + 1, std::memory_order_relaxed);
  if (!cq.driving.try_lock()) return false;
  bool has_received = false;
  for (const Cq::Feed& feed : cq.feeds) has_received |= drive_port(cq.context->runtime, *feed.port, now, is_poller);
  cq.driving.unlock();
  return has_received;
}

// What `take` finds in the CQ, at once or after one turn of its ports.
template <typename Take>
int find(Cq& cq, Take&& take) {
  int found = take();
  if (found == 0) {
    const queue::Instant now = wire::now();
    drive(cq, now);
    found = take();
    if (found == 0) on_empty(now);
  }
  if (found > 0) spin.since = {};
  return found;
}

void log_overrun(const Cq& cq) {
  report("ibv_poll_cq", {EIO, "the CQ is overrun: a completion came when its " + std::to_string(cq.queue.capacity()) +
                                  " entries were taken, and its queue pairs went to ERR; create it with room for all "
                                  "that may complete before it is polled"});
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
  cq.queue.arm(solicited_only);
  cq.empty_polls_since_armed.store(0, std::memory_order_relaxed);
  queue::MutexLock lock(cq.driving);
  for (const Cq::Feed& feed : cq.feeds) cq.context->runtime.progress().take_back(*feed.port);
  return {};
}

}  // namespace nicless::provider
