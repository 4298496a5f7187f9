// SPDX-License-Identifier: MIT
#include "queue/shared_receive_queue.h"

#include <cerrno>
#include <string>

namespace nicless::queue {

SharedReceiveQueue::SharedReceiveQueue(std::uint32_t depth, std::uint32_t sge_max, AsyncEvents& events, void* handle)
    : depth_(depth), sge_max_(sge_max), events_(events), handle_(handle), ring_(depth, sge_max) {}

SharedReceiveQueue::~SharedReceiveQueue() {
  events_.erase_if([this](const AsyncEvent& event) { return event.handle == handle_; });
}

std::uint32_t SharedReceiveQueue::limit() const {
  MutexLock lock(mutex_);
  return limit_;
}

Result<void> SharedReceiveQueue::post(std::uint64_t wr_id, std::span<const Sge> sges) {
  MutexLock lock(mutex_);
  return ring_.post(wr_id, sges, credit_);
}

bool SharedReceiveQueue::take(RecvWqe& out) {
  MutexLock lock(mutex_);
  if (!ring_.take(out)) return false;
  raise_if_low();
  return true;
}

void SharedReceiveQueue::raise_if_low() {
  if (ring_.waiting() >= limit_) return;
  limit_ = 0;
  events_.push({.type = AsyncType::SrqLimitReached, .handle = handle_});
}

Result<void> SharedReceiveQueue::set_limit(std::uint32_t limit) {
  if (limit > depth_) {
    return error(EINVAL,
                 "the limit of " + std::to_string(limit) + " is above the queue's depth of " + std::to_string(depth_));
  }
  MutexLock lock(mutex_);
  limit_ = limit;
  raise_if_low();
  return {};
}

}  // namespace nicless::queue
