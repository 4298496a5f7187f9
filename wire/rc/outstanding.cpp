// SPDX-License-Identifier: MIT
#include "wire/rc/outstanding.h"

#include <algorithm>
#include <bit>

namespace nicless::wire {

void Outstanding::start(std::uint32_t depth, std::uint64_t first_seq, std::uint64_t first_psn) {
  records_.assign(std::bit_ceil(std::max(depth, 1u)), Record{});
  begun_seq_ = first_seq;
  end_psn_ = first_psn;
}

Outstanding::Record& Outstanding::begin(std::uint64_t packets, bool wants_response) {
  Record& record = at(begun_seq_++);
  NICLESS_CHECK(packets <= kPacketsMax);
  record = Record{end_psn_, static_cast<std::uint32_t>(packets), 0, wants_response};
  end_psn_ += packets;
  return record;
}

Outstanding::Position Outstanding::find(std::uint64_t first_seq, std::uint64_t psn) const {
  NICLESS_CHECK(psn <= end_psn_);
  // Records are in PSN order: halve the range until the one that holds psn is left.
  std::uint64_t low = first_seq;
  std::uint64_t high = begun_seq_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (at(middle).end_psn() <= psn) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == begun_seq_) return Position{begun_seq_, 0};
  return Position{low, psn - at(low).first_psn};
}

}  // namespace nicless::wire
