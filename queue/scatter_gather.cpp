// SPDX-License-Identifier: MIT
#include "queue/scatter_gather.h"

#include <algorithm>

#include "queue/check.h"
#include "queue/guarded_copy.h"

namespace nicless::queue {

std::optional<SgFault> SgCursor::resolve(const MrTable& table, PdId pd, std::span<const Sge> sges,
                                         std::uint32_t access) {
  NICLESS_CHECK(sges.size() <= kSgeMax);
  sges_ = sges;
  pd_ = pd;
  access_ = access;
  length_ = 0;
  usable_length_ = 0;
  fault_.reset();
  pointers_.resize(sges.size());
  // Read first: a region removed while the list is looked up makes the next refresh look again.
  generation_ = table.generation();
  for (std::uint32_t i = 0; i < sges.size(); ++i) {
    length_ += sges[i].length;
    if (fault_) continue;
    const Access found = table.find_local(pd, sges[i], access);
    if (!found) {
      fault_ = SgFault{.index = i, .sge = sges[i], .fault = found.fault};
      continue;
    }
    pointers_[i] = found.pointer;
    usable_length_ = length_;
  }
  return fault_;
}

std::optional<SgFault> SgCursor::refresh(const MrTable& table) {
  if (generation_ == table.generation()) return fault_;
  return resolve(table, pd_, sges_, access_);
}

std::optional<SgFault> SgCursor::scatter(std::uint64_t offset, std::span<const std::byte> bytes) const {
  NICLESS_CHECK(offset <= usable_length_ && bytes.size() <= usable_length_ - offset);
  for (std::uint32_t i = 0; i < sges_.size() && !bytes.empty(); ++i) {
    if (offset >= sges_[i].length) {
      offset -= sges_[i].length;
      continue;
    }
    const std::size_t here = std::min<std::size_t>(bytes.size(), sges_[i].length - offset);
    if (!is_null(i) && !copy_to(pointers_[i] + offset, bytes.first(here))) return lost(i);
    bytes = bytes.subspan(here);
    offset = 0;
  }
  return std::nullopt;
}

SgCursor::Gathered SgCursor::gather(std::uint64_t offset, std::uint64_t length,
                                    std::span<std::span<const std::byte>> out) const {
  NICLESS_CHECK(offset <= usable_length_ && length <= usable_length_ - offset);
  Gathered gathered;
  for (std::uint32_t i = 0; i < sges_.size() && length > 0; ++i) {
    if (offset >= sges_[i].length) {
      offset -= sges_[i].length;
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(length, sges_[i].length - offset);
    const std::byte* const start = is_null(i) ? pointers_[i] : pointers_[i] + offset;
    const std::span<const std::byte> part{start, static_cast<std::size_t>(here)};
    if (!is_readable(part)) return {gathered.spans, lost(i)};
    out[gathered.spans++] = part;
    length -= here;
    offset = 0;
  }
  return gathered;
}

SgFault SgCursor::lost(std::uint32_t index) const {
  return {.index = index, .sge = sges_[index], .fault = AccessFault::Unmapped};
}

}  // namespace nicless::queue
