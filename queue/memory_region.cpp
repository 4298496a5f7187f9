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

Result<void> check_range(const std::byte* host, std::uint64_t iova, std::uint64_t length) {
  const std::uint64_t start = as_number(host);
  const std::uint64_t rounding = page_bytes() - 1;
  if (wraps(start, length) || wraps(start + length, rounding) || wraps(iova, length)) {
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

}  // namespace

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
  }
  return "cannot be used";
}

Result<MemoryKeys> MrTable::add(PdId pd, std::byte* host, std::uint64_t iova, std::uint64_t length,
                                std::uint32_t access) {
  if (auto checked = check_access(access); !checked) return checked.error();
  if (auto checked = check_range(host, iova, length); !checked) return checked.error();
  const bool writable = (access & kAccessLocalWrite) != 0;
  if ((access & kAccessOnDemand) == 0 && !is_mapped(host, length, writable)) {
    return error(EFAULT, "not all of the " + std::to_string(length) + " bytes at " + hex(as_number(host)) +
                             (writable ? " is mapped and writable" : " is mapped and readable"));
  }

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

bool MrTable::remove(LKey lkey) {
  MutexLock lock(mutex_);
  const auto found = regions_.find(lkey);
  if (found == regions_.end()) return false;
  by_rkey_.erase(found->second.keys.rkey);
  regions_.erase(found);
  generation_.fetch_add(1, std::memory_order_release);
  return true;
}

Access MrTable::find_local(PdId pd, const Sge& sge, std::uint32_t access) const {
  if (sge.length == 0) return {.pointer = &nothing};
  MutexLock lock(mutex_);
  const auto found = regions_.find(sge.lkey);
  if (found != regions_.end()) return access_in(found->second, pd, sge.addr, sge.length, access);
  const bool is_rkey = by_rkey_.contains(RKey{sge.lkey.value()});
  return {.fault = is_rkey ? AccessFault::WrongKind : AccessFault::UnknownKey};
}

Access MrTable::find_remote(PdId pd, RKey rkey, std::uint64_t address, std::uint64_t length,
                            std::uint32_t access) const {
  if (length == 0) return {.pointer = &nothing};
  MutexLock lock(mutex_);
  const auto found = by_rkey_.find(rkey);
  if (found != by_rkey_.end()) return access_in(*found->second, pd, address, length, access);
  const bool is_lkey = regions_.contains(LKey{rkey.value()});
  return {.fault = is_lkey ? AccessFault::WrongKind : AccessFault::UnknownKey};
}

std::size_t MrTable::size() const {
  MutexLock lock(mutex_);
  return regions_.size();
}

Access MrTable::access_in(const Region& region, PdId pd, std::uint64_t address, std::uint64_t length,
                          std::uint32_t access) {
  if (region.pd != pd) return {.fault = AccessFault::WrongPd};
  // Unsigned: an address before the region is an offset beyond any length.
  const std::uint64_t offset = address - region.iova;
  if (offset > region.length || length > region.length - offset) return {.fault = AccessFault::OutOfBounds};
  if ((region.access & access) != access) return {.fault = AccessFault::NoPermission};
  return {.pointer = region.host + offset};
}

// 0 is what a program forgets to fill in, so it names nothing; no number is an lkey and an rkey at the same time.
std::uint32_t MrTable::unused_key() {
  for (;;) {
    const std::uint32_t key = rng_.next_u32();
    if (key != 0 && !regions_.contains(LKey{key}) && !by_rkey_.contains(RKey{key})) return key;
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
