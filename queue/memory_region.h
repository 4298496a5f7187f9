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

enum class AccessFault : std::uint8_t { UnknownKey, WrongKind, WrongPd, OutOfBounds, NoPermission };
// "lkey 0x1234 is not registered", ready to stand in a sentence.
const char* describe(AccessFault fault);

struct MemoryKeys {
  LKey lkey{};
  RKey rkey{};
};

// A pointer into registered memory, or why not.
struct Access {
  std::byte* pointer = nullptr;
  AccessFault fault = AccessFault::UnknownKey;  // meaningful where pointer is null and the length was not 0
  explicit operator bool() const { return pointer != nullptr; }
};

class MrTable {
 public:
  explicit MrTable(std::uint64_t seed) : rng_(seed) {}

  // host: where the memory is; iova: the address by which work requests name it (equal to host unless
  // ibv_reg_mr_iova or a zero-based region says otherwise). EINVAL: remote write or atomic without local write, unknown
  // access bits, length 0 with a null address, a range that wraps. EFAULT: not all of it is mapped with the access
  // asked.
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
  struct Region;
  Access find(const Region& region, PdId pd, std::uint64_t address, std::uint64_t length, std::uint32_t access) const;

  struct Region {
    std::byte* host = nullptr;
    std::uint64_t iova = 0;
    std::uint64_t length = 0;
    std::uint32_t access = 0;
    PdId pd{};
    MemoryKeys keys{};
  };

  mutable Mutex mutex_;
  Rng rng_ GUARDED_BY(mutex_);
  std::unordered_map<LKey, Region> regions_ GUARDED_BY(mutex_);
  std::unordered_map<RKey, LKey> by_rkey_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> generation_{1};
};

// True when every page of the range is mapped, and writable where `writable` says so. May populate pages, as pinning
// would.
bool is_mapped(const std::byte* start, std::uint64_t length, bool writable);

}  // namespace nicless::queue
