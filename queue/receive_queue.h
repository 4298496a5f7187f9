// SPDX-License-Identifier: MIT
// The receive queue of one queue pair: posted scatter lists, taken by arriving messages in the order posted.
// See rdma_post_recvv(3), ibv_post_recv(3); IBTA 10.8.3. Thread-safe: the program posts while the port's holder takes.
#pragma once

#include <cstdint>
#include <span>

#include "queue/completion.h"
#include "queue/mutex.h"
#include "queue/receive_ring.h"
#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::queue {

class CompletionQueue;

// Where a responder takes the next scatter list from: a queue pair's own queue, or an SRQ.
class ReceiveSource {
 public:
  virtual ~ReceiveSource() = default;
  // Moves the oldest posted list into `out`; false when nothing is posted (the responder then answers RNR).
  virtual bool take(RecvWqe& out) = 0;
  virtual std::uint32_t sge_max() const = 0;  // entries in the longest list
  // The room that comes back when the completion of a taken list is polled.
  virtual Credit& credit() = 0;
};

class ReceiveQueue final : public ReceiveSource {
 public:
  ReceiveQueue(std::uint32_t depth, std::uint32_t sge_max, CompletionQueue& cq, Qpn qpn);
  ~ReceiveQueue() override;  // purges this queue's completions from the CQ

  std::uint32_t depth() const { return depth_; }
  std::uint32_t sge_max() const override { return sge_max_; }

  // Copies the list in; zero entries are legal. EINVAL: more than sge_max entries. ENOMEM: no room.
  Result<void> post(std::uint64_t wr_id, std::span<const Sge> sges) EXCLUDES(mutex_);
  bool take(RecvWqe& out) override EXCLUDES(mutex_);
  Credit& credit() override { return credit_; }
  bool empty() const EXCLUDES(mutex_);

  void flush() EXCLUDES(mutex_);  // completes all that is posted with WrFlushErr, in order
  void reset() EXCLUDES(mutex_);  // forgets everything without completions and purges the CQ

 private:
  const std::uint32_t depth_;
  const std::uint32_t sge_max_;
  CompletionQueue& cq_;
  const Qpn qpn_;
  mutable Mutex mutex_;
  ReceiveRing ring_ GUARDED_BY(mutex_);
  Credit credit_;
};

}  // namespace nicless::queue
