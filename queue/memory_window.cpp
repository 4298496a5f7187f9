// SPDX-License-Identifier: MIT
// Memory windows of the region table: IBTA 10.6.7, 9.4.1.1.3 (Send with Invalidate), 11.2.8.10.
#include <cerrno>

#include "queue/check.h"
#include "queue/format.h"
#include "queue/memory_region.h"

namespace nicless::queue {
namespace {

constexpr std::uint32_t kWindowAccess = kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic | kAccessZeroBased;
// What programs give a region, and a window has no use for: hardware does not look at it.
constexpr std::uint32_t kIgnoredAccess =
    kAccessLocalWrite | kAccessMwBind | kAccessOnDemand | kAccessHugeTlb | kAccessOptional;

}  // namespace

Result<RKey> MrTable::add_window(PdId pd, WindowType type) {
  MutexLock lock(mutex_);
  const RKey rkey{unused_key()};
  windows_[index_of(rkey.value())] = {.type = type, .pd = pd, .rkey = rkey};
  return rkey;
}

bool MrTable::remove_window(RKey rkey) {
  MutexLock lock(mutex_);
  const auto found = windows_.find(index_of(rkey.value()));
  if (found == windows_.end()) return false;
  unbind(found->second);
  indexes_.erase(found->first);
  windows_.erase(found);
  return true;
}

Result<void> MrTable::bind(const Accessor& who, const Binding& binding) {
  MutexLock lock(mutex_);
  const auto found = windows_.find(index_of(binding.rkey.value()));
  if (found == windows_.end()) return error(EINVAL, format("rkey 0x%x is no window's", binding.rkey.value()));
  Window& window = found->second;
  Region* const region = binding.length == 0 ? nullptr : find_region(binding.region);
  if (auto checked = check_bind(who, window, binding, region); !checked) return checked;
  unbind(window);
  window.rkey = binding.rkey;
  if (region == nullptr) return {};  // a type 1 window, unbound by a length of 0
  const bool is_zero_based = (binding.access & kAccessZeroBased) != 0;
  window.region = region;
  window.qpn = who.qpn;
  window.host = moved(region->host, binding.address - region->iova);
  window.start = is_zero_based ? 0 : binding.address;
  window.length = binding.length;
  window.access = binding.access & kWindowAccess;
  ++region->windows;
  return {};
}

Result<void> MrTable::check_bind(const Accessor& who, const Window& window, const Binding& binding,
                                 const Region* region) {
  if (window.pd != who.pd) return error(EINVAL, "the window belongs to another protection domain than the queue pair");
  if (const std::uint32_t unknown = binding.access & ~(kWindowAccess | kIgnoredAccess)) {
    return error(EINVAL, format("access bits 0x%x are not known", unknown));
  }
  if (window.type == WindowType::Type1) {
    if ((binding.access & kAccessZeroBased) != 0) return error(EINVAL, "a type 1 window cannot be zero-based");
    if (binding.length == 0) return {};
  } else {
    if (window.region != nullptr) return error(EINVAL, "the window is bound; invalidate it first (IBV_WR_LOCAL_INV)");
    if (binding.length == 0) return error(EINVAL, "a type 2 window cannot be bound to 0 bytes");
  }
  return region == nullptr ? error(EINVAL, format("lkey 0x%x is not registered", binding.region.value()))
                           : check_region(window, binding, *region);
}

Result<void> MrTable::check_region(const Window& window, const Binding& binding, const Region& region) {
  constexpr std::uint32_t kWrites = kAccessRemoteWrite | kAccessRemoteAtomic;
  if (region.pd != window.pd) return error(EINVAL, "the region belongs to another protection domain than the window");
  if ((region.access & kAccessMwBind) == 0)
    return error(EINVAL, "the region was registered without IBV_ACCESS_MW_BIND");
  if ((region.access & kAccessZeroBased) != 0) return error(EINVAL, "the region is zero-based");
  if ((binding.access & kWrites) != 0 && (region.access & kAccessLocalWrite) == 0) {
    return error(EINVAL, "a window for remote writes or atomics needs a region with IBV_ACCESS_LOCAL_WRITE");
  }
  const std::uint64_t offset = binding.address - region.iova;
  if (offset <= region.length && binding.length <= region.length - offset) return {};
  return error(EINVAL, format("%llu bytes at 0x%llx do not lie within the region",
                              static_cast<unsigned long long>(binding.length),
                              static_cast<unsigned long long>(binding.address)));
}

Result<void> MrTable::invalidate(const Accessor& who, RKey rkey) {
  MutexLock lock(mutex_);
  const auto found = windows_.find(index_of(rkey.value()));
  if (found == windows_.end()) {
    const bool is_regions = by_rkey_.contains(rkey) || regions_.contains(LKey{rkey.value()});
    return error(EINVAL, is_regions ? "is a region's, and only type 2 memory windows can be invalidated"
                                    : "is nothing that could be invalidated");
  }
  Window& window = found->second;
  if (window.type == WindowType::Type1) return error(EINVAL, "is a type 1 window's, which only a bind invalidates");
  if (window.pd != who.pd) return error(EINVAL, "is a window's of another protection domain");
  if (window.region == nullptr || window.rkey != rkey) return error(EINVAL, "is a window's that is not bound by it");
  if (window.qpn != who.qpn) return error(EINVAL, "is a window's that another queue pair has bound");
  unbind(window);
  return {};
}

void MrTable::unbind_all_of(Qpn qpn) {
  MutexLock lock(mutex_);
  for (auto& [index, window] : windows_) {
    if (window.type == WindowType::Type2 && window.qpn == qpn) unbind(window);
  }
}

void MrTable::unbind(Window& window) {
  if (window.region == nullptr) return;
  NICLESS_DCHECK(window.region->windows > 0);
  --window.region->windows;
  window.region = nullptr;
}

Access MrTable::access_through(const Window& window, const Accessor& who, RKey rkey, const Range& range) {
  if (window.pd != who.pd) return {.fault = AccessFault::WrongPd};
  if (window.region == nullptr || window.rkey != rkey) return {.fault = AccessFault::NotBound};
  if (window.type == WindowType::Type2 && window.qpn != who.qpn) return {.fault = AccessFault::WrongQueuePair};
  const std::uint64_t offset = range.address - window.start;
  if (offset > window.length || range.length > window.length - offset) return {.fault = AccessFault::OutOfBounds};
  if ((window.access & range.access) != range.access) return {.fault = AccessFault::NoPermission};
  return {.pointer = moved(window.host, offset)};
}

}  // namespace nicless::queue
