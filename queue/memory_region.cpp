// SPDX-License-Identifier: MIT
#include "queue/memory_region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

#include "queue/check.h"
#include "queue/guarded_copy.h"

namespace nicless::queue {
namespace {

constexpr std::uint32_t kAccessKnown = kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead |
                                       kAccessRemoteAtomic | kAccessMwBind | kAccessZeroBased | kAccessOnDemand |
                                       kAccessHugeTlb | kAccessOptional;
static_assert(kAccessLocalWrite == IBV_ACCESS_LOCAL_WRITE && kAccessRemoteWrite == IBV_ACCESS_REMOTE_WRITE);
static_assert(kAccessRemoteRead == IBV_ACCESS_REMOTE_READ && kAccessRemoteAtomic == IBV_ACCESS_REMOTE_ATOMIC);
static_assert(kAccessMwBind == IBV_ACCESS_MW_BIND && kAccessZeroBased == IBV_ACCESS_ZERO_BASED);
static_assert(kAccessOnDemand == IBV_ACCESS_ON_DEMAND && kAccessHugeTlb == IBV_ACCESS_HUGETLB);
static_assert(kAccessOptional == IBV_ACCESS_OPTIONAL_RANGE);

std::byte nothing{};  // where an access of no bytes points

std::string hex(std::uint64_t value) {
  std::array<char, 20> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool wraps(std::uint64_t start, std::uint64_t length) {
  return start + length < start;
}

std::uint64_t as_number(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

// What ibv_reg_mr(3) and the kernel behind it refuse.
Result<void> check_access(std::uint32_t access) {
  if (const std::uint32_t unknown = access & ~kAccessKnown) {
    return error(EINVAL, "access bits " + hex(unknown) + " are not known");
  }
  if ((access & (kAccessRemoteWrite | kAccessRemoteAtomic)) != 0 && (access & kAccessLocalWrite) == 0) {
    return error(EINVAL,
                 "IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE beside them");
  }
  if ((access & kAccessHugeTlb) != 0 && (access & kAccessOnDemand) == 0) {
    return error(EINVAL, "IBV_ACCESS_HUGETLB is for regions with IBV_ACCESS_ON_DEMAND only");
  }
  return {};
}

// A region on demand that is the whole address space: ibv_reg_mr(3), implicit ODP.
bool is_implicit(const std::byte* host, std::uint64_t length, std::uint32_t access) {
  return (access & kAccessOnDemand) != 0 && host == nullptr && length == UINT64_MAX;
}

Result<void> check_range(const std::byte* host, std::uint64_t iova, std::uint64_t length) {
  const std::uint64_t start = as_number(host);
  const std::uint64_t rounding = page_bytes() - 1;
  if (wraps(iova, length)) {
    return error(EINVAL, "a region of " + std::to_string(length) + " bytes at iova " + hex(iova) +
                             " would reach past the end of the address space");
  }
  if (wraps(start, length) || wraps(start + length, rounding)) {
    return error(EINVAL, "a region of " + std::to_string(length) + " bytes at " + hex(start) +
                             " would reach past the end of the address space");
  }
  if (length == 0 && (start & rounding) == 0) {
    return error(EINVAL, "a region of 0 bytes at " + hex(start) + " has no page; give it a length");
  }
  return {};
}

std::byte* page_of(const std::byte* address) {
  return const_cast<std::byte*>(address) - (as_number(address) & (page_bytes() - 1));
}

// EINVAL is what a kernel before 5.14 says to the advice, and what one that knows it says to memory without the
// permission or that is a device's (which could not be registered with hardware either).
bool kernel_knows_populate() {
  static const bool knows = [] {
    const std::byte on_stack{};
    return ::madvise(page_of(&on_stack), page_bytes(), MADV_POPULATE_READ) == 0;
  }();
  return knows;
}

bool populate(std::byte* start, std::uint64_t length, bool writable) {
  const int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  while (::madvise(start, length, advice) != 0) {
    if (errno != EAGAIN && errno != EINTR) return false;
  }
  return true;
}

// Without MADV_POPULATE: whether something is mapped there at all.
bool is_anything_mapped(std::byte* start, std::uint64_t length) {
  constexpr std::uint64_t kPagesAtOnce = 4096;
  std::array<unsigned char, kPagesAtOnce> resident{};
  const std::uint64_t step = kPagesAtOnce * page_bytes();
  for (std::uint64_t offset = 0; offset < length; offset += step) {
    if (::mincore(start + offset, std::min(step, length - offset), resident.data()) != 0) return false;
  }
  return true;
}

Result<void> check_place(const RegionChange::Place& place, std::uint32_t access) {
  if (auto checked = check_access(access); !checked) return checked;
  if (is_implicit(place.host, place.length, access)) {
    if (place.iova == 0) return {};
    return error(EINVAL, "an implicit region (null, the whole address space) begins at 0");
  }
  if (auto checked = check_range(place.host, place.iova, place.length); !checked) return checked;
  const bool writable = (access & kAccessLocalWrite) != 0;
  if ((access & kAccessOnDemand) != 0 || is_mapped(place.host, place.length, writable)) return {};
  return error(EFAULT, "not all of the " + std::to_string(place.length) + " bytes at " + hex(as_number(place.host)) +
                           (writable ? " is mapped and writable" : " is mapped and readable"));
}

constexpr std::size_t kPacketBytesMax = 4096;
alignas(64) std::array<std::byte, kPacketBytesMax> zeros{};

}  // namespace

std::byte* null_memory() {
  return zeros.data();
}

const char* describe(AccessFault fault) {
  switch (fault) {
    case AccessFault::UnknownKey:
      return "is not registered";
    case AccessFault::WrongKind:
      return "is of the other kind (an lkey and the rkey of a region differ)";
    case AccessFault::WrongPd:
      return "belongs to another protection domain";
    case AccessFault::OutOfBounds:
      return "covers a region that does not hold the whole range";
    case AccessFault::NoPermission:
      return "was registered without the access right that this needs";
    case AccessFault::Unmapped:
      return "is registered, but the program has unmapped or protected the memory since";
    case AccessFault::NotBound:
      return "is of a memory window that is not bound, or was bound anew or invalidated";
    case AccessFault::WrongQueuePair:
      return "is of a type 2 memory window that another queue pair has bound";
  }
  return "cannot be used";
}

Result<MemoryKeys> MrTable::add(PdId pd, std::byte* host, std::uint64_t iova, std::uint64_t length,
                                std::uint32_t access) {
  if (auto checked = check_place({host, iova, length}, access); !checked) return checked.error();
  arm_memory_guard();
  MutexLock lock(mutex_);
  const LKey lkey{unused_key()};
  Region& region = regions_[lkey];
  region = {.host = host, .iova = iova, .length = length, .access = access, .pd = pd, .keys = {}};
  const RKey rkey{unused_key()};
  region.keys = {.lkey = lkey, .rkey = rkey};
  by_rkey_.emplace(rkey, &region);
  return region.keys;
}

std::byte* MrTable::moved(const std::byte* start, std::uint64_t offset) {
  return reinterpret_cast<std::byte*>(as_number(start) + offset);
}

LKey MrTable::add_null(PdId pd) {
  MutexLock lock(mutex_);
  const LKey lkey{unused_key()};
  Region& region = regions_[lkey];
  region = {.length = UINT64_MAX, .access = kAccessLocalWrite, .pd = pd, .keys = {lkey, RKey{}}, .is_null = true};
  return lkey;
}

Result<void> MrTable::change(LKey lkey, const RegionChange& change) {
  MutexLock lock(mutex_);
  Region* const region = find_region(lkey);
  if (region == nullptr) return error(EINVAL, "this region is not registered");
  if (region->windows > 0) return error(EBUSY, "memory windows are bound to this region; invalidate them first");
  const auto place = change.place.value_or(RegionChange::Place{region->host, region->iova, region->length});
  const std::uint32_t access = change.access.value_or(region->access);
  if (change.place || change.access) {
    if (auto checked = check_place(place, access); !checked) return checked;
  }
  region->host = place.host;
  region->iova = place.iova;
  region->length = place.length;
  region->access = access;
  region->pd = change.pd.value_or(region->pd);
  arm_memory_guard();
  generation_.fetch_add(1, std::memory_order_release);
  return {};
}

Result<void> MrTable::remove(LKey lkey) {
  MutexLock lock(mutex_);
  const auto found = regions_.find(lkey);
  if (found == regions_.end()) return error(EINVAL, "this region is not registered");
  if (const std::uint32_t windows = found->second.windows; windows > 0) {
    return error(EBUSY, "memory windows are bound to this region (" + std::to_string(windows) +
                            "); invalidate them, or deallocate them, first");
  }
  const MemoryKeys keys = found->second.keys;
  indexes_.erase(index_of(keys.lkey.value()));
  if (by_rkey_.erase(keys.rkey) != 0) indexes_.erase(index_of(keys.rkey.value()));
  regions_.erase(found);
  generation_.fetch_add(1, std::memory_order_release);
  return {};
}

MrTable::Region* MrTable::find_region(LKey lkey) {
  const auto found = regions_.find(lkey);
  return found == regions_.end() ? nullptr : &found->second;
}

Access MrTable::find_local(PdId pd, const Sge& sge, std::uint32_t access) const {
  if (sge.length == 0) return {.pointer = &nothing};
  MutexLock lock(mutex_);
  const auto found = regions_.find(sge.lkey);
  if (found != regions_.end()) return access_in(found->second, pd, {sge.addr, sge.length, access});
  const bool is_rkey = by_rkey_.contains(RKey{sge.lkey.value()});
  return {.fault = is_rkey ? AccessFault::WrongKind : AccessFault::UnknownKey};
}

Access MrTable::find_remote(const Accessor& who, RKey rkey, std::uint64_t address, std::uint64_t length,
                            std::uint32_t access) const {
  if (length == 0) return {.pointer = &nothing};
  MutexLock lock(mutex_);
  const auto found = by_rkey_.find(rkey);
  const Range range{address, length, access};
  if (found != by_rkey_.end()) return access_in(*found->second, who.pd, range);
  const auto window = windows_.find(index_of(rkey.value()));
  if (window != windows_.end()) return access_through(window->second, who, rkey, range);
  const bool is_lkey = regions_.contains(LKey{rkey.value()});
  return {.fault = is_lkey ? AccessFault::WrongKind : AccessFault::UnknownKey};
}

Result<std::byte*> MrTable::find_on_demand(PdId pd, const Sge& sge, bool writable) const {
  MutexLock lock(mutex_);
  const auto found = regions_.find(sge.lkey);
  if (found == regions_.end() || (found->second.access & kAccessOnDemand) == 0) {
    return error(ENOENT, "lkey " + hex(sge.lkey.value()) + " is not of a region with IBV_ACCESS_ON_DEMAND");
  }
  const Access access = access_in(found->second, pd, {sge.addr, sge.length, writable ? kAccessLocalWrite : 0});
  if (access) return access.pointer;
  const std::string why = "lkey " + hex(sge.lkey.value()) + " " + describe(access.fault);
  return error(access.fault == AccessFault::OutOfBounds ? EFAULT : EPERM, why);
}

std::size_t MrTable::size() const {
  MutexLock lock(mutex_);
  return regions_.size();
}

Access MrTable::access_in(const Region& region, PdId pd, const Range& range) {
  if (region.pd != pd) return {.fault = AccessFault::WrongPd};
  // Unsigned: an address before the region is an offset beyond any length.
  const std::uint64_t offset = range.address - region.iova;
  if (offset > region.length || range.length > region.length - offset) return {.fault = AccessFault::OutOfBounds};
  if ((region.access & range.access) != range.access) return {.fault = AccessFault::NoPermission};
  return {.pointer = region.is_null ? null_memory() : moved(region.host, offset)};
}

// 0 is what a program forgets to fill in, so it names nothing. No two keys share their upper 24 bits: none is an lkey
// and an rkey at the same time, and the lower 8 of a window's are free to change.
std::uint32_t MrTable::unused_key() {
  for (;;) {
    const std::uint32_t key = rng_.next_u32();
    if (key != 0 && indexes_.insert(index_of(key)).second) return key;
  }
}

bool is_mapped(const std::byte* start, std::uint64_t length, bool writable) {
  if (length == 0) return true;
  std::byte* first_page = page_of(start);
  const std::uint64_t misalignment = as_number(start) - as_number(first_page);
  const std::uint64_t bytes = (length + misalignment + page_bytes() - 1) & ~(page_bytes() - 1);
  const int saved_errno = errno;
  const bool mapped =
      kernel_knows_populate() ? populate(first_page, bytes, writable) : is_anything_mapped(first_page, bytes);
  errno = saved_errno;
  return mapped;
}

}  // namespace nicless::queue
