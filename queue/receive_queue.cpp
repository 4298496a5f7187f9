// SPDX-License-Identifier: MIT
#include "queue/receive_queue.h"

#include "queue/completion_queue.h"

namespace nicless::queue {

ReceiveQueue::ReceiveQueue(std::uint32_t depth, std::uint32_t sge_max, CompletionQueue& cq, Qpn qpn)
    : depth_(depth), sge_max_(sge_max), cq_(cq), qpn_(qpn), ring_(depth, sge_max) {}

ReceiveQueue::~ReceiveQueue() {
  cq_.purge(credit_);
}

Result<void> ReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges) {
  MutexLock lock(mutex_);
  return ring_.post(wr_id, sges, credit_);
}

bool ReceiveQueue::take(RecvWqe& out) {
  MutexLock lock(mutex_);
  return ring_.take(out);
}

bool ReceiveQueue::empty() const {
  MutexLock lock(mutex_);
  return ring_.waiting() == 0;
}

void ReceiveQueue::flush() {
  MutexLock lock(mutex_);
  std::uint64_t wr_id = 0;
  while (ring_.discard(wr_id)) {
    cq_.push({.wr_id = wr_id,
              .status = WcStatus::WrFlushErr,
              .opcode = WcOpcode::Recv,
              .qp_num = qpn_,
              .credit = &credit_,
              .credit_count = 1});
  }
}

void ReceiveQueue::reset() {
  MutexLock lock(mutex_);
  // Room is given back under the CQ's lock only, so none of it is on its way once the purge is done.
  cq_.purge(credit_);
  ring_.reset(credit_);
}

}  // namespace nicless::queue
