// SPDX-License-Identifier: MIT
// Goal: regions that are not plain ranges: changed ones, null regions, on demand and implicit ones.
// Method: a region table, pages of mmap.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "queue/memory_region.h"
#include "queue/scatter_gather.h"
#include "tests/queue/print.h"

namespace nicless::queue {
namespace {

constexpr PdId kPd{1};
constexpr PdId kOtherPd{2};

struct Table {
  std::vector<std::byte> bytes{1000};
  std::vector<std::byte> others{500};
  MrTable table{1};
  std::uint64_t address = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::uint64_t other_address = reinterpret_cast<std::uintptr_t>(others.data());
  MemoryKeys keys = table.add(kPd, bytes.data(), address, bytes.size(), kAccessLocalWrite).value();
};

}  // namespace

TEST_CASE("a region changes its place, its domain or its rights under the same keys", "[queue][mr]") {
  Table t;
  const std::uint64_t before = t.table.generation();
  const Sge here{t.address, 1000, t.keys.lkey};
  const Sge there{t.other_address, 500, t.keys.lkey};
  REQUIRE(t.table.change(
      t.keys.lkey, {.place = RegionChange::Place{t.others.data(), t.other_address, 500}, .pd = {}, .access = {}}));
  CHECK(t.table.generation() != before);
  CHECK(t.table.find_local(kPd, here, 0).fault == AccessFault::OutOfBounds);
  CHECK(t.table.find_local(kPd, there, kAccessLocalWrite).pointer == t.others.data());
  REQUIRE(t.table.change(t.keys.lkey, {.place = {}, .pd = kOtherPd, .access = {}}));
  CHECK(t.table.find_local(kPd, there, 0).fault == AccessFault::WrongPd);
  REQUIRE(t.table.change(t.keys.lkey, {.place = {}, .pd = {}, .access = 0u}));
  CHECK(t.table.find_local(kOtherPd, there, kAccessLocalWrite).fault == AccessFault::NoPermission);
  CHECK(t.table.find_local(kOtherPd, there, 0).pointer == t.others.data());
}

TEST_CASE("a change that registration would refuse changes nothing", "[queue][mr]") {
  Table t;
  const Sge here{t.address, 1000, t.keys.lkey};
  const auto refused = [&](const RegionChange& change) {
    const int result = errno_of(t.table.change(t.keys.lkey, change));
    CHECK(t.table.find_local(kPd, here, kAccessLocalWrite).pointer == t.bytes.data());
    return result;
  };
  CHECK(refused({.place = {}, .pd = kOtherPd, .access = kAccessRemoteWrite}) == EINVAL);
  CHECK(refused({.place = RegionChange::Place{nullptr, 0, 4096}, .pd = kOtherPd, .access = {}}) == EFAULT);
  CHECK(refused({.place = RegionChange::Place{t.bytes.data(), t.address, ~std::uint64_t{0}}, .pd = {}, .access = {}}) ==
        EINVAL);
  CHECK(errno_of(t.table.change(LKey{0x777}, {.place = {}, .pd = {}, .access = 0u})) == EINVAL);
}

TEST_CASE("a null region reads as zeros anywhere, forgets what is written, and has no rkey", "[queue][mr]") {
  Table t;
  const LKey null = t.table.add_null(kPd);
  const std::vector<Sge> list{{t.address, 10, t.keys.lkey}, {0x1234, 4096, null}, {t.address + 10, 10, t.keys.lkey}};
  SgCursor cursor;
  REQUIRE_FALSE(cursor.resolve(t.table, kPd, list, kAccessLocalWrite));
  const std::vector<std::byte> message(4116, std::byte{7});
  REQUIRE_FALSE(cursor.scatter(0, message));
  CHECK(std::all_of(t.bytes.begin(), t.bytes.begin() + 20, [](std::byte byte) { return byte == std::byte{7}; }));
  std::array<std::span<const std::byte>, kSgeMax> spans;
  const auto [count, fault] = cursor.gather(5, 4106, spans);
  REQUIRE_FALSE(fault);
  REQUIRE(count == 3);
  CHECK(spans[1].size() == 4096);
  CHECK(std::all_of(spans[1].begin(), spans[1].end(), [](std::byte byte) { return byte == std::byte{0}; }));

  CHECK(t.table.find_remote(kPd, RKey{null.value()}, 0, 1, 0).fault == AccessFault::WrongKind);
  CHECK(t.table.find_remote(kPd, RKey{0}, 0, 1, 0).fault == AccessFault::UnknownKey);
  CHECK(t.table.find_local(kOtherPd, list[1], 0).fault == AccessFault::WrongPd);
  CHECK(t.table.remove(null));
  CHECK(t.table.find_local(kPd, list[1], 0).fault == AccessFault::UnknownKey);
}

TEST_CASE("an implicit region is the whole address space, and begins at 0", "[queue][mr]") {
  Table t;
  const std::uint32_t access = kAccessOnDemand | kAccessLocalWrite | kAccessRemoteRead;
  const MemoryKeys keys = t.table.add(kPd, nullptr, 0, UINT64_MAX, access).value();
  CHECK(t.table.find_local(kPd, {t.address, 1000, keys.lkey}, kAccessLocalWrite).pointer == t.bytes.data());
  CHECK(t.table.find_remote(kPd, keys.rkey, t.other_address, 500, kAccessRemoteRead).pointer == t.others.data());
  CHECK(errno_of(t.table.add(kPd, nullptr, 4096, UINT64_MAX, access)) == EINVAL);
  CHECK(errno_of(t.table.add(kPd, nullptr, 0, UINT64_MAX, kAccessLocalWrite)) == EINVAL);
}

TEST_CASE("advice is for regions on demand, of one's own domain, within their bounds and rights", "[queue][mr]") {
  Table t;
  const MemoryKeys keys = t.table.add(kPd, t.bytes.data(), t.address, 1000, kAccessOnDemand).value();
  const Sge all{t.address, 1000, keys.lkey};
  CHECK(t.table.find_on_demand(kPd, all, false).value() == t.bytes.data());
  CHECK(errno_of(t.table.find_on_demand(kPd, all, true)) == EPERM);
  CHECK(errno_of(t.table.find_on_demand(kOtherPd, all, false)) == EPERM);
  CHECK(errno_of(t.table.find_on_demand(kPd, {t.address, 1001, keys.lkey}, false)) == EFAULT);
  CHECK(errno_of(t.table.find_on_demand(kPd, {t.address, 1000, t.keys.lkey}, false)) == ENOENT);
  CHECK(errno_of(t.table.find_on_demand(kPd, {t.address, 1000, LKey{0x777}}, false)) == ENOENT);
}

}  // namespace nicless::queue
