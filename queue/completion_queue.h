// SPDX-License-Identifier: MIT
// A completion queue: completions in the order they were made, polled as ibv_wc. See ibv_poll_cq(3),
// ibv_req_notify_cq(3), ibv_resize_cq(3); IBTA 11.4.2. Thread-safe: any port's holder pushes, any thread polls.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <span>

#include "queue/async_events.h"
#include "queue/completion.h"
#include "queue/completion_channel.h"
#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/ring.h"

namespace nicless::queue {

inline constexpr std::uint32_t kCqeMax = 4194303;  // device limit, the one mlx5 reports

// What a program may ask of a CQ beyond its size: ibv_create_cq_ex(3).
struct CqOptions {
  // Stamps each completion as it is made; null: none is stamped. A function, as completions are made in many places
  // that time is not handed to, and no queue may look at a clock: who makes the CQ brings one.
  std::uint64_t (*clock)() = nullptr;
  // IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: a full CQ takes the new completion and loses its oldest, whose room comes back.
  bool ignores_overrun = false;
};

// ibv_modify_cq(3): an armed CQ waits with its event for `count` completions, but for no longer than `period` after the
// first. Time comes from who moderates, for the reason given above.
struct Moderation {
  std::uint32_t count = 1;
  Duration period{};
  Instant (*now)() = nullptr;
  void (*wake)() = nullptr;  // raise_if_due() has to be called anew; called with the CQ's lock held
};

class CompletionQueue {
 public:
  // handle: the ibv_cq that events name. channel may be null.
  CompletionQueue(std::uint32_t capacity, CompletionChannel* channel, AsyncEvents& async_events, void* handle,
                  const CqOptions& options = {});
  ~CompletionQueue();  // forgets events of this CQ that nobody took
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  // A completion that does not fit is lost, as on hardware: the CQ is overrun for good, one CQ_ERR event is raised,
  // and poll fails from then on. IBTA 11.6.3.2.
  void push(const Completion& completion) EXCLUDES(mutex_);

  // Up to out.size() completions, oldest first; -1 once overrun.
  int poll(std::span<ibv_wc> out) EXCLUDES(mutex_);
  // The same for one completion, as it was made: 1, 0 or -1.
  int poll(Completion& out) EXCLUDES(mutex_);
  bool is_overrun() const { return overrun_.load(std::memory_order_relaxed); }
  // Whether a completion of this queue pair was lost to an overrun: it cannot report any more, and is done.
  bool has_lost_completion_of(Qpn qpn) const EXCLUDES(mutex_);
  void forget_lost_completions_of(Qpn qpn) EXCLUDES(mutex_);  // it starts anew
  // Without its lock: programs that poll ask all the time.
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // One event for the next completion pushed; with solicited_only, for the next that is solicited or in error.
  // Completions already waiting raise none. Arming for all overrides arming for solicited ones.
  void arm(bool solicited_only) EXCLUDES(mutex_);

  void moderate(const Moderation& moderation) EXCLUDES(mutex_);
  // Raises the event that waits, if its time has come; else when that will be.
  std::optional<Instant> raise_if_due(Instant now) EXCLUDES(mutex_);

  std::uint32_t capacity() const EXCLUDES(mutex_);
  // EINVAL: fewer than the completions that wait in it, or 0, or above kCqeMax.
  Result<void> resize(std::uint32_t capacity) EXCLUDES(mutex_);

  // Removes what belongs to a queue that is going away, without giving its room back.
  void purge(const Credit& credit) EXCLUDES(mutex_);
  // Removes completions of one queue pair (those that came from an SRQ give the SRQ its room back).
  void purge(Qpn qpn) EXCLUDES(mutex_);

 private:
  enum class Armed : std::uint8_t { No, Solicited, All };
  bool make_room() REQUIRES(mutex_);
  void pop_front() REQUIRES(mutex_);
  void update_count() REQUIRES(mutex_) { count_.store(completions_.size(), std::memory_order_release); }
  void raise_if_armed(const Completion& completion) REQUIRES(mutex_);
  bool may_wait() REQUIRES(mutex_);
  void raise() REQUIRES(mutex_);

  CompletionChannel* const channel_;
  AsyncEvents& async_events_;
  void* const handle_;
  const CqOptions options_;
  mutable Mutex mutex_;
  Ring<Completion> completions_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};  // of completions_; changes under mutex_ only
  std::uint32_t capacity_ GUARDED_BY(mutex_);
  Armed armed_ GUARDED_BY(mutex_) = Armed::No;
  Moderation moderation_ GUARDED_BY(mutex_);
  std::uint32_t waiting_ GUARDED_BY(mutex_) = 0;  // completions since the arming that an event waits to tell of
  std::optional<Instant> due_ GUARDED_BY(mutex_);
  std::atomic<bool> overrun_{false};  // changes under mutex_ only
  std::set<Qpn> losers_ GUARDED_BY(mutex_);
};

}  // namespace nicless::queue
