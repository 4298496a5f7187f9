// SPDX-License-Identifier: MIT
#include "wire/rc/replay.h"

#include <algorithm>

namespace nicless::wire {

void Replay::start(std::uint32_t depth) {
  reads_.assign(std::max(depth, 1u), Read{});
  next_ = 0;
}

void Replay::add(const Read& read) {
  reads_[next_] = read;
  next_ = (next_ + 1) % reads_.size();
}

const Replay::Read* Replay::find(std::uint64_t psn, const Reth& reth, std::uint32_t mtu_bytes) const {
  const auto covers = [&](const Read& read) {
    if (psn < read.first_psn || psn >= read.first_psn + read.packets) return false;
    const std::uint64_t skipped = (psn - read.first_psn) * mtu_bytes;
    return reth.rkey == read.reth.rkey && reth.address == read.reth.address + skipped &&
           reth.length <= read.reth.length - skipped;
  };
  const auto found = std::find_if(reads_.begin(), reads_.end(), covers);
  return found == reads_.end() ? nullptr : &*found;
}

}  // namespace nicless::wire
