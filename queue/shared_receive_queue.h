// SPDX-License-Identifier: MIT
// A shared receive queue: as receive_queue.h, feeding several queue pairs, with a limit that raises one asynchronous
// event when fewer lists than it are left. See ibv_create_srq(3), ibv_modify_srq(3); IBTA 10.2.9. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "queue/async_events.h"
#include "queue/receive_queue.h"

namespace nicless::queue {

class SharedReceiveQueue final : public ReceiveSource {
 public:
  // handle: what the SRQ_LIMIT_REACHED event names (the program's ibv_srq).
  SharedReceiveQueue(std::uint32_t depth, std::uint32_t sge_max, AsyncEvents& events, void* handle);
  ~SharedReceiveQueue() override;  // forgets the event that nobody took; no completion may name its room any more

  std::uint32_t depth() const { return depth_; }
  std::uint32_t sge_max() const override { return sge_max_; }
  std::uint32_t limit() const EXCLUDES(mutex_);

  Result<void> post(std::uint64_t wr_id, std::span<const Sge> sges) EXCLUDES(mutex_);
  bool take(RecvWqe& out) override EXCLUDES(mutex_);
  Credit& credit() override { return credit_; }

  // Arms the one-shot limit; 0 disarms. The event comes as soon as fewer are posted: at once, or with the take that
  // leaves fewer. EINVAL: above the depth.
  Result<void> set_limit(std::uint32_t limit) EXCLUDES(mutex_);

 private:
  void raise_if_low() REQUIRES(mutex_);

  const std::uint32_t depth_;
  const std::uint32_t sge_max_;
  AsyncEvents& events_;
  void* const handle_;
  mutable Mutex mutex_;
  ReceiveRing ring_ GUARDED_BY(mutex_);
  std::uint32_t limit_ GUARDED_BY(mutex_) = 0;
  Credit credit_;
};

}  // namespace nicless::queue
