// SPDX-License-Identifier: MIT
#include "tests/sim/receive_pool.h"

#include "tests/sim/world.h"

namespace nicless::sim {

ReceivePool::ReceivePool(Side& side, std::uint32_t depth, std::size_t slot_bytes, bool is_shared)
    : slot_bytes_(slot_bytes), is_shared_(is_shared), landing_(side, depth * slot_bytes, queue::kAccessLocalWrite) {
  for (std::size_t slot = depth; slot > 0; --slot) free_slots_.push_back(slot - 1);
}

bool ReceivePool::post(queue::Rng& rng, Side& side, std::size_t length, bool is_bad) {
  if (free_slots_.empty()) return false;
  auto pieces = random_pieces(rng, free_slots_.back() * slot_bytes_, length, queue::kSgeMax);
  auto sges = landing_.sges(pieces);
  if (is_bad) {
    for (queue::Sge& sge : sges) sge.lkey = queue::LKey(sge.lkey.value() ^ 0x10);
  }
  if (!side.post_recv(posted_, sges)) return false;
  outstanding_.emplace(posted_++, Posted{free_slots_.back(), std::move(pieces)});
  free_slots_.pop_back();
  return true;
}

std::vector<Piece> ReceivePool::take(std::uint64_t wr_id) {
  const auto found = outstanding_.find(wr_id);
  if (found == outstanding_.end()) throw Failure("a receive completes twice, or was never posted");
  if (!is_shared_ && found != outstanding_.begin()) throw Failure("a receive completes out of order");
  std::vector<Piece> pieces = std::move(found->second.pieces);
  free_slots_.push_back(found->second.slot);
  outstanding_.erase(found);
  return pieces;
}

void ReceivePool::accept_partial(std::size_t most) {
  for (const auto& [wr_id, posted] : outstanding_) {
    if (most == 0) return;
    if (landing_.is_as_expected(posted.pieces)) continue;
    landing_.accept(posted.pieces);
    --most;
  }
}

}  // namespace nicless::sim
