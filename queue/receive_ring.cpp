// SPDX-License-Identifier: MIT
#include "queue/receive_ring.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

namespace nicless::queue {

ReceiveRing::ReceiveRing(std::uint32_t depth, std::uint32_t sge_max)
    : depth_(depth),
      sge_max_(sge_max),
      slot_mask_(std::bit_ceil(std::size_t{depth}) - 1),
      slots_(slot_mask_ + 1),
      sges_((slot_mask_ + 1) * sge_max) {
  NICLESS_CHECK(depth <= kQueueDepthMax && sge_max <= kSgeMax);
}

Result<void> ReceiveRing::post(std::uint64_t wr_id, std::span<const Sge> sges, const Credit& credit) {
  if (sges.size() > sge_max_) {
    return error(EINVAL, "the list has " + std::to_string(sges.size()) + " SGEs, the queue was made for " +
                             std::to_string(sge_max_));
  }
  if (posted_ - credit.released() >= depth_) {
    return error(ENOMEM, "no room: all " + std::to_string(depth_) +
                             " work requests of the queue are posted, or completed and not polled yet");
  }
  const std::size_t index = index_of(posted_);
  slots_[index] = {.wr_id = wr_id, .sge_count = static_cast<std::uint32_t>(sges.size())};
  std::copy(sges.begin(), sges.end(), sges_.at(index * sge_max_));
  ++posted_;
  return {};
}

bool ReceiveRing::take(RecvWqe& out) {
  const std::size_t index = index_of(taken_);
  if (!discard(out.wr_id)) return false;
  const Sge* const list = sges_.at(index * sge_max_);
  out.sge_storage.assign(list, list + slots_[index].sge_count);
  return true;
}

bool ReceiveRing::discard(std::uint64_t& wr_id) {
  if (taken_ == posted_) return false;
  wr_id = slots_[index_of(taken_)].wr_id;
  ++taken_;
  return true;
}

void ReceiveRing::reset(Credit& credit) {
  taken_ = posted_;
  credit.release(static_cast<std::uint32_t>(posted_ - credit.released()));
}

}  // namespace nicless::queue
