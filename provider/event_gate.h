// SPDX-License-Identifier: MIT
// Counts the events about an object that a program has got and acknowledged, so that destroying the object can wait
// until the two are equal: ibv_get_cq_event(3), ibv_get_async_event(3). Thread-safe; a leaf lock.
#pragma once

#include <condition_variable>
#include <cstdint>

#include "queue/mutex.h"

namespace nicless::provider {

class EventGate {
 public:
  void on_delivered() EXCLUDES(mutex_) {
    queue::MutexLock lock(mutex_);
    ++unacknowledged_;
  }
  void acknowledge(std::uint32_t count) EXCLUDES(mutex_) {
    queue::MutexLock lock(mutex_);
    unacknowledged_ -= count;
    if (unacknowledged_ <= 0) all_acknowledged_.notify_all();
  }
  // A program that never acknowledges waits here for ever, as the man pages say.
  void wait_until_acknowledged() NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock lock(mutex_.native());
    all_acknowledged_.wait(lock, [this]() NO_THREAD_SAFETY_ANALYSIS { return unacknowledged_ <= 0; });
  }

 private:
  queue::Mutex mutex_;
  std::condition_variable all_acknowledged_;
  std::int64_t unacknowledged_ GUARDED_BY(mutex_) = 0;
};

}  // namespace nicless::provider
