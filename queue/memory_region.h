// SPDX-License-Identifier: MIT
// The memory regions of one open device. A lookup checks key, protection domain, bounds and access right in one call
// and answers with a pointer or with the reason it may not be had. See ibv_reg_mr(3); IBTA 10.6. Thread-safe.
//
// A pointer stays good while the caller holds the port's lock: ibv_dereg_mr removes the region here and then passes
// through every port's lock before it returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/rng.h"
#include "queue/types.h"
#include "queue/work_request.h"

namespace nicless::queue {

// Bits of ibv_access_flags.
inline constexpr std::uint32_t kAccessLocalWrite = 1;
inline constexpr std::uint32_t kAccessRemoteWrite = 2;
inline constexpr std::uint32_t kAccessRemoteRead = 4;
inline constexpr std::uint32_t kAccessRemoteAtomic = 8;
inline constexpr std::uint32_t kAccessMwBind = 16;
inline constexpr std::uint32_t kAccessZeroBased = 32;
inline constexpr std::uint32_t kAccessOnDemand = 64;
inline constexpr std::uint32_t kAccessHugeTlb = 128;           // a hint, together with OnDemand only
inline constexpr std::uint32_t kAccessOptional = 0x3ff0'0000;  // IBV_ACCESS_OPTIONAL_RANGE: hints that may be ignored

enum class AccessFault : std::uint8_t { UnknownKey, WrongKind, WrongPd, OutOfBounds, NoPermission, Unmapped };
// What to say after the key: "is not registered" in "lkey 0x1234 is not registered".
const char* describe(AccessFault fault);

struct MemoryKeys {
  LKey lkey{};
  RKey rkey{};
};

// A pointer into registered memory, or why not. An access of no bytes is never a fault, whatever its key (IBTA
// 9.7.4.1.2, 10.7.3.1): its pointer is not null and must not be followed.
struct Access {
  std::byte* pointer = nullptr;
  AccessFault fault = AccessFault::UnknownKey;  // meaningful where pointer is null
  explicit operator bool() const { return pointer != nullptr; }
};

class MrTable {
 public:
  explicit MrTable(std::uint64_t seed) : rng_(seed) {}

  // host: where the memory is; iova: the address by which work requests name it (equal to host unless
  // ibv_reg_mr_iova or a zero-based region says otherwise). EINVAL: remote write or atomic without local write, unknown
  // access bits, a range that touches no page (length 0 at the start of one, so also at null; elsewhere the kernel
  // takes length 0), a range that wraps. EFAULT: not all of it is mapped with the access asked; a region on demand may
  // be mapped later. The first call arms the guard of guarded_copy.h: nothing keeps the memory from being unmapped.
  Result<MemoryKeys> add(PdId pd, std::byte* host, std::uint64_t iova, std::uint64_t length, std::uint32_t access)
      EXCLUDES(mutex_);
  bool remove(LKey lkey) EXCLUDES(mutex_);

  // access: the bits needed of kAccess*; 0 for reading locally.
  Access find_local(PdId pd, const Sge& sge, std::uint32_t access) const EXCLUDES(mutex_);
  Access find_remote(PdId pd, RKey rkey, std::uint64_t address, std::uint64_t length, std::uint32_t access) const
      EXCLUDES(mutex_);

  // Changes whenever a region is removed: what was looked up under another generation must be looked up again.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  std::size_t size() const EXCLUDES(mutex_);

 private:
  struct Region {
    std::byte* host = nullptr;
    std::uint64_t iova = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;
    PdId pd{};
    MemoryKeys keys{};
  };

  static Access access_in(const Region& region, PdId pd, std::uint64_t address, std::uint64_t length,
                          std::uint32_t access);
  std::uint32_t unused_key() REQUIRES(mutex_);

  mutable Mutex mutex_;
  Rng rng_ GUARDED_BY(mutex_);
  std::unordered_map<LKey, Region> regions_ GUARDED_BY(mutex_);
  std::unordered_map<RKey, const Region*> by_rkey_ GUARDED_BY(mutex_);  // into regions_, whose nodes stay put
  std::atomic<std::uint64_t> generation_{1};
};

// True when every page of the range is mapped, and writable where `writable` says so. May populate pages, as pinning
// would. Page-rounded; an empty range is mapped. On a kernel before 5.14 `writable` is not checked.
bool is_mapped(const std::byte* start, std::uint64_t length, bool writable);

}  // namespace nicless::queue
