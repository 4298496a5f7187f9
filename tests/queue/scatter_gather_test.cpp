// SPDX-License-Identifier: MIT
// Goal: a cursor reads and writes a scatter-gather list at any offset as if it were one buffer. Method: lists with
// empty, tiny and page-crossing entries against a flat reference copy; every byte outside the list is compared too.
#include "queue/scatter_gather.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "queue/rng.h"
#include "tests/queue/print.h"

namespace nicless::queue {
namespace {

constexpr PdId kPd{1};

// One registered buffer and a list of pieces of it, in any order.
struct Buffer {
  explicit Buffer(std::size_t size) : bytes(size, std::byte{0xa5}) {
    keys = table.add(kPd, bytes.data(), address(0), size, kAccessLocalWrite).value();
  }
  std::uint64_t address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(bytes.data() + offset); }
  void append(std::size_t offset, std::uint32_t length) {
    list.push_back({.addr = address(offset), .length = length, .lkey = keys.lkey});
    for (std::size_t i = 0; i < length; ++i) places.push_back(offset + i);
  }

  MrTable table{1};
  std::vector<std::byte> bytes;
  MemoryKeys keys;
  std::vector<Sge> list;
  std::vector<std::size_t> places;  // of each byte of the list, in order
};

void fill_list(Buffer& buffer) {
  buffer.append(64, 7);
  buffer.append(0, 0);
  buffer.append(10, 1);
  buffer.append(128, 64);
  buffer.append(0, 3);
  buffer.append(203, 13);
}

std::vector<std::byte> random_bytes(std::size_t size, Rng& rng) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.next_u32());
  return bytes;
}

TEST_CASE("scattering at any offset changes those bytes of the list and no other", "[queue][sg]") {
  Buffer buffer(256);
  fill_list(buffer);
  SgCursor cursor;
  REQUIRE_FALSE(cursor.resolve(buffer.table, kPd, buffer.list, kAccessLocalWrite));
  REQUIRE(cursor.length() == 88);
  Rng rng(1);
  std::vector<std::byte> expected = buffer.bytes;
  for (std::size_t offset = 0; offset <= 88; ++offset) {
    for (std::size_t length = 0; length <= 88 - offset; ++length) {
      const std::vector<std::byte> message = random_bytes(length, rng);
      for (std::size_t i = 0; i < length; ++i) expected[buffer.places[offset + i]] = message[i];
      REQUIRE_FALSE(cursor.scatter(offset, message));
      REQUIRE(buffer.bytes == expected);
    }
  }
}

TEST_CASE("gathering at any offset names those bytes in order, without empty spans", "[queue][sg]") {
  Buffer buffer(256);
  fill_list(buffer);
  Rng rng(2);
  buffer.bytes = random_bytes(256, rng);
  // The vector's storage moved with the assignment: register what it is now.
  Buffer fresh(256);
  std::copy(buffer.bytes.begin(), buffer.bytes.end(), fresh.bytes.begin());
  fill_list(fresh);
  SgCursor cursor;
  REQUIRE_FALSE(cursor.resolve(fresh.table, kPd, fresh.list, 0));
  for (std::size_t offset = 0; offset <= 88; ++offset) {
    for (std::size_t length = 0; length <= 88 - offset; ++length) {
      std::array<std::span<const std::byte>, kSgeMax> spans;
      const auto [used, fault] = cursor.gather(offset, length, spans);
      REQUIRE_FALSE(fault);
      std::vector<std::byte> gathered;
      for (std::size_t i = 0; i < used; ++i) {
        REQUIRE_FALSE(spans[i].empty());
        gathered.insert(gathered.end(), spans[i].begin(), spans[i].end());
      }
      REQUIRE(gathered.size() == length);
      for (std::size_t i = 0; i < length; ++i) REQUIRE(gathered[i] == fresh.bytes[fresh.places[offset + i]]);
    }
  }
}

TEST_CASE("an entry that may not be used is named with its place and the reason", "[queue][sg]") {
  Buffer buffer(64);
  buffer.append(0, 8);
  buffer.append(60, 5);
  SgCursor cursor;
  const auto fault = cursor.resolve(buffer.table, kPd, buffer.list, 0);
  REQUIRE(fault);
  CHECK(fault->index == 1);
  CHECK(fault->sge == buffer.list[1]);
  CHECK(fault->fault == AccessFault::OutOfBounds);
}

TEST_CASE("a list is usable up to its first bad entry", "[queue][sg]") {
  Buffer buffer(64);
  buffer.append(0, 8);
  buffer.append(60, 5);
  buffer.append(8, 4);
  SgCursor cursor;
  REQUIRE(cursor.resolve(buffer.table, kPd, buffer.list, kAccessLocalWrite));
  CHECK(cursor.length() == 17);
  CHECK(cursor.usable_length() == 8);
  REQUIRE(cursor.fault());
  CHECK(cursor.fault()->index == 1);
  const auto again = cursor.refresh(buffer.table);
  REQUIRE(again);
  CHECK(again->index == 1);
  const std::vector<std::byte> message(8, std::byte{0x5a});
  CHECK_FALSE(cursor.scatter(0, message));
  CHECK(std::equal(message.begin(), message.end(), buffer.bytes.begin()));
  CHECK(buffer.bytes[8] == std::byte{0xa5});
}

TEST_CASE("empty entries need no key, and an empty list is a list of no bytes", "[queue][sg]") {
  const MrTable table(1);
  const std::vector<Sge> list(2, Sge{.addr = 1, .length = 0, .lkey = LKey{5}});
  SgCursor cursor;
  CHECK_FALSE(cursor.resolve(table, kPd, list, kAccessLocalWrite));
  CHECK(cursor.length() == 0);
  CHECK_FALSE(cursor.scatter(0, {}));
  CHECK(cursor.gather(0, 0, {}).spans == 0);
  CHECK_FALSE(cursor.resolve(table, kPd, {}, 0));
  CHECK(cursor.length() == 0);
}

TEST_CASE("a region removed meanwhile is noticed by refresh", "[queue][sg]") {
  Buffer buffer(64);
  buffer.append(0, 8);
  const MemoryKeys other = buffer.table.add(kPd, buffer.bytes.data(), buffer.address(0), 64, 0).value();
  SgCursor cursor;
  REQUIRE_FALSE(cursor.resolve(buffer.table, kPd, buffer.list, 0));
  buffer.table.remove(other.lkey);
  CHECK_FALSE(cursor.refresh(buffer.table));
  CHECK(cursor.length() == 8);
  buffer.table.remove(buffer.keys.lkey);
  const auto fault = cursor.refresh(buffer.table);
  REQUIRE(fault);
  CHECK(fault->fault == AccessFault::UnknownKey);
}

}  // namespace
}  // namespace nicless::queue
