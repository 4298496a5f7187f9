// SPDX-License-Identifier: MIT
// The memory regions and windows of one open device. A lookup checks key, protection domain, bounds and access right in
// one call and answers with a pointer or with the reason it may not be had. See ibv_reg_mr(3); IBTA 10.6. Thread-safe.
//
// A pointer stays good while the caller holds the port's lock: ibv_dereg_mr removes the region here and then passes
// through every port's lock before it returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>

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

enum class AccessFault : std::uint8_t {
  UnknownKey,
  WrongKind,
  WrongPd,
  OutOfBounds,
  NoPermission,
  Unmapped,
  NotBound,
  WrongQueuePair
};
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

// Who asks for memory: a type 2 window serves the queue pair that bound it, and no other.
struct Accessor {
  constexpr Accessor(PdId the_pd, Qpn the_qpn = {}) : pd(the_pd), qpn(the_qpn) {}
  PdId pd;
  Qpn qpn;
};

// What ibv_rereg_mr changes of a region.
struct RegionChange {
  struct Place {
    std::byte* host = nullptr;
    std::uint64_t iova = 0;
    std::uint64_t length = 0;
  };
  std::optional<Place> place;
  std::optional<PdId> pd;
  std::optional<std::uint32_t> access;
};

// Where find_local() points in a null region, whatever the address: zeros, as many as fit a packet, not to be written.
std::byte* null_memory();

enum class WindowType : std::uint8_t { Type1 = 1, Type2 = 2 };  // numbers of ibv_mw_type; type 2 is 2B

class MrTable {
 public:
  explicit MrTable(std::uint64_t seed) : rng_(seed) {}

  // host: where the memory is; iova: the address by which work requests name it (equal to host unless
  // ibv_reg_mr_iova or a zero-based region says otherwise). EINVAL: remote write or atomic without local write, unknown
  // access bits, a range that touches no page (length 0 at the start of one, so also at null; elsewhere the kernel
  // takes length 0), a range that wraps. EFAULT: not all of it is mapped with the access asked; a region on demand may
  // be mapped later, and one at null of UINT64_MAX bytes (implicit) is the whole address space. The first call arms the
  // guard of guarded_copy.h: nothing keeps the memory from being unmapped.
  Result<MemoryKeys> add(PdId pd, std::byte* host, std::uint64_t iova, std::uint64_t length, std::uint32_t access)
      EXCLUDES(mutex_);
  // A region of any address and length that reads as zeros and forgets what is written: ibv_alloc_null_mr(3). For local
  // use; it has no rkey.
  LKey add_null(PdId pd) EXCLUDES(mutex_);
  // ibv_rereg_mr(3): as add(), under the same keys. EBUSY: windows are bound to it. On an error nothing has changed.
  Result<void> change(LKey lkey, const RegionChange& change) EXCLUDES(mutex_);
  // EBUSY: windows are bound to it. EINVAL: there is no such region.
  Result<void> remove(LKey lkey) EXCLUDES(mutex_);

  // Windows: ibv_alloc_mw(3), ibv_bind_mw(3). The upper 24 bits of an rkey name the window for as long as it lives, the
  // lower 8 change as the program wants: with each bind.
  Result<RKey> add_window(PdId pd, WindowType type) EXCLUDES(mutex_);
  bool remove_window(RKey rkey) EXCLUDES(mutex_);  // whatever its lower 8 bits; bound or not
  // EINVAL with the reason: what a bind work request completes with MW_BIND_ERR for. IBTA 10.6.7.2.2.
  Result<void> bind(const Accessor& who, const Binding& binding) EXCLUDES(mutex_);
  // By LOCAL_INV or a peer's SEND_WITH_INV: a bound type 2 window only. The reason goes on after "rkey 0x..".
  Result<void> invalidate(const Accessor& who, RKey rkey) EXCLUDES(mutex_);
  void unbind_all_of(Qpn qpn) EXCLUDES(mutex_);  // type 2 windows do not outlive their queue pair's end

  // access: the bits needed of kAccess*; 0 for reading locally.
  Access find_local(PdId pd, const Sge& sge, std::uint32_t access) const EXCLUDES(mutex_);
  Access find_remote(const Accessor& who, RKey rkey, std::uint64_t address, std::uint64_t length,
                     std::uint32_t access) const EXCLUDES(mutex_);

  // Where a range of a region on demand is, for ibv_advise_mr(3). ENOENT: no such region, or not on demand. EPERM:
  // another protection domain's, or not writable. EFAULT: outside of the region.
  Result<std::byte*> find_on_demand(PdId pd, const Sge& sge, bool writable) const EXCLUDES(mutex_);

  // Changes whenever a region is removed or changed: what was looked up under another generation must be looked up
  // again.
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
    std::uint32_t windows = 0;  // bound to it
    bool is_null = false;
  };
  struct Window {
    WindowType type = WindowType::Type1;
    PdId pd{};
    RKey rkey{};
    Region* region = nullptr;  // null: not bound, and what follows means nothing
    Qpn qpn{};                 // that bound it
    std::byte* host = nullptr;
    std::uint64_t start = 0;  // the address by which requests name its first byte
    std::uint64_t length = 0;
    std::uint32_t access = 0;
  };
  struct Range {
    std::uint64_t address;
    std::uint64_t length;
    std::uint32_t access;
  };

  static std::uint32_t index_of(std::uint32_t key) { return key >> 8; }
  static Access access_in(const Region& region, PdId pd, const Range& range);
  static Access access_through(const Window& window, const Accessor& who, RKey rkey, const Range& range);
  static Result<void> check_bind(const Accessor& who, const Window& window, const Binding& binding,
                                 const Region* region);
  static Result<void> check_region(const Window& window, const Binding& binding, const Region& region);
  static void unbind(Window& window);
  // By numbers: an implicit region begins at null, where pointers do not add up.
  static std::byte* moved(const std::byte* start, std::uint64_t offset);
  Region* find_region(LKey lkey) REQUIRES(mutex_);
  std::uint32_t unused_key() REQUIRES(mutex_);

  mutable Mutex mutex_;
  Rng rng_ GUARDED_BY(mutex_);
  std::unordered_map<LKey, Region> regions_ GUARDED_BY(mutex_);
  std::unordered_map<RKey, const Region*> by_rkey_ GUARDED_BY(mutex_);    // into regions_, whose nodes stay put
  std::unordered_map<std::uint32_t, Window> windows_ GUARDED_BY(mutex_);  // by index_of(rkey)
  std::unordered_set<std::uint32_t> indexes_ GUARDED_BY(mutex_);          // index_of every key in use
  std::atomic<std::uint64_t> generation_{1};
};

// True when every page of the range is mapped, and writable where `writable` says so. May populate pages, as pinning
// would. Page-rounded; an empty range is mapped. On a kernel before 5.14 `writable` is not checked.
bool is_mapped(const std::byte* start, std::uint64_t length, bool writable);

}  // namespace nicless::queue
