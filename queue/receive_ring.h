// SPDX-License-Identifier: MIT
// The ring that a receive queue and a shared receive queue have in common: posted scatter lists, taken in order, whose
// room comes back through a Credit. Thread-compatible: the queue around it has the lock.
#pragma once

#include <cstdint>
#include <span>

#include "queue/completion.h"
#include "queue/lazy_array.h"
#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::queue {

class ReceiveRing {
 public:
  ReceiveRing(std::uint32_t depth, std::uint32_t sge_max);

  // EINVAL: more entries than sge_max. ENOMEM: `depth` lists are posted, or taken and not given back to `credit`.
  Result<void> post(std::uint64_t wr_id, std::span<const Sge> sges, const Credit& credit);
  bool take(RecvWqe& out);
  bool discard(std::uint64_t& wr_id);                         // takes one whose list nobody needs
  std::uint64_t waiting() const { return posted_ - taken_; }  // posted and not taken

  // Forgets all that is posted and gives all room back. Call it when no completion names `credit` any more.
  void reset(Credit& credit);

 private:
  struct Slot {
    std::uint64_t wr_id;
    std::uint32_t sge_count;
  };
  std::size_t index_of(std::uint64_t seq) const { return static_cast<std::size_t>(seq) & slot_mask_; }

  const std::uint32_t depth_;
  const std::uint32_t sge_max_;
  const std::size_t slot_mask_;  // slots are a power of two, at least the depth
  LazyArray<Slot> slots_;
  LazyArray<Sge> sges_;  // sge_max for each slot
  std::uint64_t posted_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace nicless::queue
