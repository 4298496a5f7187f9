// SPDX-License-Identifier: MIT
#include "wire/qp/unacknowledged.h"

#include <algorithm>

namespace nicless::wire {

void Unacknowledged::start() {
  next_seq_ = queue_.retired();
  failure_.reset();
}

const queue::Wqe* Unacknowledged::next() {
  next_seq_ = std::max(next_seq_, queue_.retired());  // flushed meanwhile
  if (failure_ || next_seq_ == queue_.posted()) return nullptr;
  return &queue_.at(next_seq_);
}

bool Unacknowledged::fail(queue::WcStatus status) {
  failure_ = status;
  return queue_.retired() == next_seq_ && on_sent();
}

// It completes now if nothing before it is on its way, else with that.
void Unacknowledged::done_at_once() {
  const bool is_oldest = queue_.retired() == next_seq_;
  ++next_seq_;
  if (is_oldest) queue_.retire(queue::WcStatus::Success);
}

bool Unacknowledged::on_sent() {
  while (queue_.retired() < next_seq_) queue_.retire(queue::WcStatus::Success);
  if (!failure_) return false;
  queue_.retire(*failure_);
  failure_.reset();
  return true;
}

}  // namespace nicless::wire
