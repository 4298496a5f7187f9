// SPDX-License-Identifier: MIT
// Goal: registration refuses what the kernel refuses, and a lookup answers with the right pointer or the right reason.
// Method: pages from mmap with known protection; every fault provoked alone.
#include "queue/memory_region.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <set>
#include <vector>

#include "tests/queue/print.h"

namespace nicless::queue {
namespace {

constexpr PdId kPd{1};
constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kAllAccess = kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead | kAccessRemoteAtomic;

class Pages {
 public:
  explicit Pages(std::size_t count, int protection = PROT_READ | PROT_WRITE)
      : bytes_(count * kPage), start_(::mmap(nullptr, bytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(start_ != MAP_FAILED);
  }
  ~Pages() { ::munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(start_); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(start_); }
  std::size_t size() const { return bytes_; }
  void unmap(std::size_t page) { ::munmap(data() + page * kPage, kPage); }
  void protect(std::size_t page, int protection) { ::mprotect(data() + page * kPage, kPage, protection); }

 private:
  std::size_t bytes_;
  void* start_;
};

Result<MemoryKeys> add(MrTable& table, const Pages& pages, std::uint32_t access) {
  return table.add(kPd, pages.data(), pages.address(), pages.size(), access);
}

TEST_CASE("keys are unique, never 0, and an lkey is no rkey", "[queue][mr]") {
  MrTable table(1);
  const Pages pages(1);
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 500; ++i) {
    const MemoryKeys made = add(table, pages, kAllAccess).value();
    keys.insert(made.lkey.value());
    keys.insert(made.rkey.value());
  }
  CHECK(keys.size() == 1000);
  CHECK_FALSE(keys.contains(0));
  CHECK(table.size() == 500);
}

TEST_CASE("keys depend on the seed", "[queue][mr]") {
  const Pages pages(1);
  MrTable one(1), same(1), other(2);
  const LKey key = add(one, pages, 0).value().lkey;
  CHECK(add(same, pages, 0).value().lkey == key);
  CHECK(add(other, pages, 0).value().lkey != key);
}

TEST_CASE("access bits that contradict each other or mean nothing are refused", "[queue][mr]") {
  MrTable table(1);
  const Pages pages(1);
  CHECK(errno_of(add(table, pages, kAccessRemoteWrite)) == EINVAL);
  CHECK(errno_of(add(table, pages, kAccessRemoteAtomic)) == EINVAL);
  CHECK(errno_of(add(table, pages, 1u << 15)) == EINVAL);
  CHECK(errno_of(add(table, pages, kAccessHugeTlb)) == EINVAL);
  CHECK(table.size() == 0);
  CHECK(add(table, pages, 0));
  CHECK(add(table, pages, kAccessRemoteRead | kAccessMwBind));
  CHECK(add(table, pages, kAllAccess | kAccessZeroBased | kAccessOnDemand | kAccessHugeTlb));
  CHECK(add(table, pages, kAccessOptional));
}

TEST_CASE("a range that wraps or touches no page is refused", "[queue][mr]") {
  MrTable table(1);
  const Pages pages(1);
  CHECK(errno_of(table.add(kPd, nullptr, 0, 0, 0)) == EINVAL);
  CHECK(errno_of(table.add(kPd, pages.data(), pages.address(), 0, 0)) == EINVAL);
  CHECK(errno_of(table.add(kPd, pages.data(), pages.address(), ~std::uint64_t{0}, 0)) == EINVAL);
  CHECK(errno_of(table.add(kPd, pages.data(), ~std::uint64_t{0} - 10, 100, 0)) == EINVAL);
  const std::uint64_t to_last_byte = ~std::uint64_t{0} - pages.address();
  CHECK(errno_of(table.add(kPd, pages.data(), 0, to_last_byte, 0)) == EINVAL);
}

TEST_CASE("a region of no bytes within a page is legal, as in the kernel", "[queue][mr]") {
  MrTable table(1);
  const Pages pages(1);
  const auto keys = table.add(kPd, pages.data() + 8, pages.address() + 8, 0, 0);
  REQUIRE(keys);
  const Sge one_byte{.addr = pages.address() + 8, .length = 1, .lkey = keys->lkey};
  CHECK(table.find_local(kPd, one_byte, 0).fault == AccessFault::OutOfBounds);
}

TEST_CASE("memory must be mapped, all of it, with the access asked for", "[queue][mr]") {
  MrTable table(1);
  Pages pages(3);
  CHECK(add(table, pages, kAllAccess));
  pages.protect(1, PROT_READ);
  CHECK(add(table, pages, kAccessRemoteRead));
  CHECK(errno_of(add(table, pages, kAccessLocalWrite)) == EFAULT);
  pages.protect(1, PROT_NONE);
  CHECK(errno_of(add(table, pages, 0)) == EFAULT);
  pages.unmap(1);
  CHECK(errno_of(add(table, pages, 0)) == EFAULT);
  CHECK(errno_of(table.add(kPd, nullptr, 0, 100, 0)) == EFAULT);
}

TEST_CASE("only the pages that a range touches must be mapped", "[queue][mr]") {
  MrTable table(1);
  Pages pages(3);
  pages.unmap(2);
  CHECK(table.add(kPd, pages.data() + 100, pages.address() + 100, 2 * kPage - 100, kAccessLocalWrite));
  CHECK(errno_of(table.add(kPd, pages.data() + 100, pages.address() + 100, 2 * kPage - 99, 0)) == EFAULT);
}

TEST_CASE("a region on demand may be mapped later", "[queue][mr]") {
  MrTable table(1);
  Pages pages(1);
  pages.unmap(0);
  CHECK(add(table, pages, kAccessOnDemand | kAccessLocalWrite));
}

TEST_CASE("registering leaves errno and the memory alone", "[queue][mr]") {
  MrTable table(1);
  Pages pages(2);
  pages.data()[kPage] = std::byte{7};
  errno = 55;
  REQUIRE(add(table, pages, kAllAccess));
  pages.unmap(0);
  CHECK(errno_of(add(table, pages, 0)) == EFAULT);
  CHECK(errno == 55);
  CHECK(pages.data()[kPage] == std::byte{7});
}

struct Registered {
  Registered() : keys(table.add(kPd, pages.data() + 16, pages.address() + 16, 100, kAllAccess).value()) {}
  Sge sge(std::uint64_t offset, std::uint32_t length) const {
    return {.addr = pages.address() + 16 + offset, .length = length, .lkey = keys.lkey};
  }

  MrTable table{1};
  Pages pages{1};
  MemoryKeys keys;
};

TEST_CASE("a lookup inside the region answers with the place", "[queue][mr]") {
  const Registered r;
  CHECK(r.table.find_local(kPd, r.sge(0, 100), kAccessLocalWrite).pointer == r.pages.data() + 16);
  CHECK(r.table.find_local(kPd, r.sge(99, 1), 0).pointer == r.pages.data() + 115);
  CHECK(r.table.find_remote(kPd, r.keys.rkey, r.sge(10, 0).addr, 90, kAccessRemoteRead).pointer == r.pages.data() + 26);
}

TEST_CASE("a lookup that leaves the region on either side is out of bounds", "[queue][mr]") {
  const Registered r;
  for (const Sge& sge : {r.sge(0, 101), r.sge(100, 1), r.sge(1, 100), r.sge(~std::uint64_t{0}, 1),
                         r.sge(~std::uint64_t{0}, 2), r.sge(0, 0xffff'ffff)}) {
    const Access found = r.table.find_local(kPd, sge, 0);
    CHECK_FALSE(found);
    CHECK(found.fault == AccessFault::OutOfBounds);
  }
  CHECK_FALSE(r.table.find_remote(kPd, r.keys.rkey, r.sge(1, 0).addr, ~std::uint64_t{0}, 0));
}

TEST_CASE("each reason to refuse is told from the others", "[queue][mr]") {
  Registered r;
  Sge wrong_key = r.sge(0, 1);
  wrong_key.lkey = LKey{r.keys.lkey.value() ^ r.keys.rkey.value()};
  CHECK(r.table.find_local(kPd, wrong_key, 0).fault == AccessFault::UnknownKey);
  wrong_key.lkey = LKey{r.keys.rkey.value()};
  CHECK(r.table.find_local(kPd, wrong_key, 0).fault == AccessFault::WrongKind);
  const std::uint64_t start = r.sge(0, 1).addr;
  CHECK(r.table.find_remote(kPd, RKey{r.keys.lkey.value()}, start, 1, 0).fault == AccessFault::WrongKind);
  CHECK(r.table.find_remote(kPd, RKey{1}, start, 1, 0).fault == AccessFault::UnknownKey);
  CHECK(r.table.find_local(PdId{2}, r.sge(0, 1), 0).fault == AccessFault::WrongPd);
  CHECK(r.table.find_remote(PdId{2}, r.keys.rkey, start, 1, 0).fault == AccessFault::WrongPd);

  const MemoryKeys read_only = add(r.table, r.pages, 0).value();
  const Sge sge{.addr = r.pages.address(), .length = 1, .lkey = read_only.lkey};
  CHECK(r.table.find_local(kPd, sge, 0));
  CHECK(r.table.find_local(kPd, sge, kAccessLocalWrite).fault == AccessFault::NoPermission);
  CHECK(r.table.find_remote(kPd, read_only.rkey, sge.addr, 1, kAccessRemoteRead).fault == AccessFault::NoPermission);
}

TEST_CASE("an access of no bytes is never a fault", "[queue][mr]") {
  const MrTable table(1);
  CHECK(table.find_local(kPd, {.addr = 0x1234, .length = 0, .lkey = LKey{99}}, kAccessLocalWrite));
  CHECK(table.find_remote(kPd, RKey{0}, 0, 0, kAccessRemoteWrite));
}

TEST_CASE("a region is named by its iova, also where that is 0", "[queue][mr]") {
  MrTable table(1);
  const Pages pages(1);
  const std::uint64_t iova = GENERATE(std::uint64_t{0}, std::uint64_t{0x1000'0000'0000});
  const MemoryKeys keys = table.add(kPd, pages.data(), iova, kPage, kAllAccess).value();
  CHECK(table.find_remote(kPd, keys.rkey, iova + 5, 1, 0).pointer == pages.data() + 5);
  CHECK_FALSE(table.find_remote(kPd, keys.rkey, pages.address() + 5, 1, 0));
}

TEST_CASE("a removed region is gone under both keys, once, and the generation tells", "[queue][mr]") {
  Registered r;
  const std::uint64_t before = r.table.generation();
  CHECK_FALSE(r.table.remove(LKey{r.keys.rkey.value()}));
  CHECK(r.table.generation() == before);
  CHECK(r.table.remove(r.keys.lkey));
  CHECK(r.table.generation() != before);
  CHECK_FALSE(r.table.remove(r.keys.lkey));
  CHECK(r.table.find_local(kPd, r.sge(0, 1), 0).fault == AccessFault::UnknownKey);
  CHECK(r.table.find_remote(kPd, r.keys.rkey, r.sge(0, 1).addr, 1, 0).fault == AccessFault::UnknownKey);
  CHECK(r.table.size() == 0);
}

TEST_CASE("every fault can stand in a sentence", "[queue][mr]") {
  std::set<std::string> sentences;
  for (AccessFault fault : {AccessFault::UnknownKey, AccessFault::WrongKind, AccessFault::WrongPd,
                            AccessFault::OutOfBounds, AccessFault::NoPermission}) {
    sentences.insert(describe(fault));
  }
  CHECK(sentences.size() == 5);
}

}  // namespace
}  // namespace nicless::queue
