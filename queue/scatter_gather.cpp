// SPDX-License-Identifier: MIT
#include "queue/scatter_gather.h"

#include <algorithm>
#include <cstring>

#include "queue/check.h"

namespace nicless::queue {
namespace {

template <typename Word>
void store_word(std::byte* to, const std::byte* from) {
  using Aliased [[gnu::may_alias]] = Word;
  Word value;
  std::memcpy(&value, from, sizeof(value));
  __atomic_store_n(reinterpret_cast<Aliased*>(to), value, __ATOMIC_RELEASE);
}

}  // namespace

void copy_last_byte_last(std::byte* to, std::span<const std::byte> bytes) {
  const std::size_t length = bytes.size();
  if (length == 0) return;
  const auto end = reinterpret_cast<std::uintptr_t>(to) + length;
  std::size_t word = 8;
  while (word > 1 && (word > length || end % word != 0)) word /= 2;
  const std::size_t before = length - word;
  std::memcpy(to, bytes.data(), before);
  switch (word) {
    case 8:
      return store_word<std::uint64_t>(to + before, bytes.data() + before);
    case 4:
      return store_word<std::uint32_t>(to + before, bytes.data() + before);
    case 2:
      return store_word<std::uint16_t>(to + before, bytes.data() + before);
    default:
      return store_word<std::uint8_t>(to + before, bytes.data() + before);
  }
}

std::optional<SgFault> SgCursor::resolve(const MrTable& table, PdId pd, std::span<const Sge> sges,
                                         std::uint32_t access) {
  NICLESS_CHECK(sges.size() <= kSgeMax);
  sges_ = sges;
  pd_ = pd;
  access_ = access;
  length_ = 0;
  usable_length_ = 0;
  fault_.reset();
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

void SgCursor::scatter(std::uint64_t offset, std::span<const std::byte> bytes) const {
  NICLESS_CHECK(offset <= usable_length_ && bytes.size() <= usable_length_ - offset);
  for (std::size_t i = 0; i < sges_.size() && !bytes.empty(); ++i) {
    if (offset >= sges_[i].length) {
      offset -= sges_[i].length;
      continue;
    }
    const std::size_t here = std::min<std::size_t>(bytes.size(), sges_[i].length - offset);
    copy_last_byte_last(pointers_[i] + offset, bytes.first(here));
    bytes = bytes.subspan(here);
    offset = 0;
  }
}

std::size_t SgCursor::gather(std::uint64_t offset, std::uint64_t length,
                             std::span<std::span<const std::byte>> out) const {
  NICLESS_CHECK(offset <= usable_length_ && length <= usable_length_ - offset);
  std::size_t used = 0;
  for (std::size_t i = 0; i < sges_.size() && length > 0; ++i) {
    if (offset >= sges_[i].length) {
      offset -= sges_[i].length;
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(length, sges_[i].length - offset);
    out[used++] = {pointers_[i] + offset, static_cast<std::size_t>(here)};
    length -= here;
    offset = 0;
  }
  return used;
}

}  // namespace nicless::queue
