// SPDX-License-Identifier: MIT
// A mutex that clang's -Wthread-safety can check, and its scoped lock. The order in which locks may be taken stands in
// docs/THREADS.md: registry -> port -> SRQ | RQ -> CQ -> event list; the MR table is a leaf.
#pragma once

#include <mutex>

#if defined(__clang__)
#define NICLESS_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define NICLESS_THREAD_ATTRIBUTE(x)
#endif
#define CAPABILITY(x) NICLESS_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY NICLESS_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) NICLESS_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES(...) NICLESS_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) NICLESS_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) NICLESS_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) NICLESS_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) NICLESS_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS NICLESS_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace nicless::queue {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() ACQUIRE() { mutex_.lock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }  // for condition_variable

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace nicless::queue
