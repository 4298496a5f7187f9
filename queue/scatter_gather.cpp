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

// Programs wait for a message by polling its last byte, or the aligned word that ends with it. So that word is stored
// last and in one piece; memcpy alone promises no order.
void copy_last_word_last(std::byte* to, const std::byte* from, std::size_t length) {
  const auto end = reinterpret_cast<std::uintptr_t>(to) + length;
  std::size_t word = 8;
  while (word > 1 && (word > length || end % word != 0)) word /= 2;
  const std::size_t before = length - word;
  std::memcpy(to, from, before);
  switch (word) {
    case 8:
      return store_word<std::uint64_t>(to + before, from + before);
    case 4:
      return store_word<std::uint32_t>(to + before, from + before);
    case 2:
      return store_word<std::uint16_t>(to + before, from + before);
    default:
      return store_word<std::uint8_t>(to + before, from + before);
  }
}

}  // namespace

std::optional<SgFault> SgCursor::resolve(const MrTable& table, PdId pd, std::span<const Sge> sges,
                                         std::uint32_t access) {
  NICLESS_CHECK(sges.size() <= kSgeMax);
  sges_ = sges;
  pd_ = pd;
  access_ = access;
  length_ = 0;
  // Read first: a region removed while the list is looked up makes the next refresh look again.
  generation_ = table.generation();
  for (std::uint32_t i = 0; i < sges.size(); ++i) {
    const Access found = table.find_local(pd, sges[i], access);
    if (!found) return SgFault{.index = i, .sge = sges[i], .fault = found.fault};
    pointers_[i] = found.pointer;
    length_ += sges[i].length;
  }
  return std::nullopt;
}

std::optional<SgFault> SgCursor::refresh(const MrTable& table) {
  if (generation_ == table.generation()) return std::nullopt;
  return resolve(table, pd_, sges_, access_);
}

void SgCursor::scatter(std::uint64_t offset, std::span<const std::byte> bytes) const {
  NICLESS_CHECK(offset <= length_ && bytes.size() <= length_ - offset);
  for (std::size_t i = 0; i < sges_.size() && !bytes.empty(); ++i) {
    if (offset >= sges_[i].length) {
      offset -= sges_[i].length;
      continue;
    }
    const std::size_t here = std::min<std::size_t>(bytes.size(), sges_[i].length - offset);
    copy_last_word_last(pointers_[i] + offset, bytes.data(), here);
    bytes = bytes.subspan(here);
    offset = 0;
  }
}

std::size_t SgCursor::gather(std::uint64_t offset, std::uint64_t length,
                             std::span<std::span<const std::byte>> out) const {
  NICLESS_CHECK(offset <= length_ && length <= length_ - offset);
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
