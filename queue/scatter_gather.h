// SPDX-License-Identifier: MIT
// SgCursor: a scatter-gather list resolved once against the region table, then read or written at any offset.
// Port-bound: the pointers it holds are good while the port's lock is held, and refreshed when a region was removed in
// between. IBTA 10.7.3.1 (gather and scatter).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "queue/memory_region.h"
#include "queue/work_request.h"

namespace nicless::queue {

// Which entry of a list may not be used, and why.
struct SgFault {
  std::uint32_t index = 0;
  Sge sge{};
  AccessFault fault = AccessFault::UnknownKey;
};

class SgCursor {
 public:
  SgCursor() = default;
  explicit SgCursor(std::uint32_t sge_max) { pointers_.reserve(sge_max); }  // resolving such lists allocates nothing

  // Looks up every entry that is not empty; access as in MrTable::find_local. Answers with the first that may not be
  // used, which matters only to what reaches it. The list must outlive the cursor's use (refresh reads it again).
  std::optional<SgFault> resolve(const MrTable& table, PdId pd, std::span<const Sge> sges, std::uint32_t access);
  // Looks everything up again if a region was removed since; cheap when none was. Answers as resolve() does.
  std::optional<SgFault> refresh(const MrTable& table);

  std::uint64_t length() const { return length_; }                // bytes in the whole list
  std::uint64_t usable_length() const { return usable_length_; }  // bytes before the first entry that may not be used
  const std::optional<SgFault>& fault() const { return fault_; }

  // Copies `bytes` to [offset, offset + bytes.size()) of the list, first byte first and the last byte last.
  // offset + bytes.size() <= usable_length(). A fault if the program has taken the memory away.
  std::optional<SgFault> scatter(std::uint64_t offset, std::span<const std::byte> bytes) const;

  struct Gathered {
    std::size_t spans = 0;
    std::optional<SgFault> fault;  // the program has taken the memory away
  };
  // Puts the spans that make up [offset, offset + length) into `out`, from out[0] on; says how many there are. At most
  // as many as the list has entries, so `out` must hold kSgeMax.
  Gathered gather(std::uint64_t offset, std::uint64_t length, std::span<std::span<const std::byte>> out) const;

 private:
  SgFault lost(std::uint32_t index) const;
  bool is_null(std::size_t index) const { return pointers_[index] == null_memory(); }

  std::span<const Sge> sges_;
  PdId pd_{};
  std::uint32_t access_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t usable_length_ = 0;
  std::optional<SgFault> fault_;
  SgeArray<std::byte*> pointers_;  // one for each entry
};

}  // namespace nicless::queue
