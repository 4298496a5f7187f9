// SPDX-License-Identifier: MIT
// Goal: a memory window opens what it was bound to, to whom it was bound for, until it is unbound; and what may not be
// bound or invalidated is refused with its reason. Method: a region table, each refusal provoked alone.
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "queue/memory_region.h"
#include "tests/queue/print.h"

namespace nicless::queue {
namespace {

constexpr PdId kPd{1};
constexpr PdId kOtherPd{2};
constexpr Accessor kQp{kPd, Qpn{0x11}};
constexpr Accessor kOtherQp{kPd, Qpn{0x22}};
constexpr std::uint32_t kBindable = kAccessLocalWrite | kAccessMwBind;
constexpr std::uint32_t kWindow = kAccessRemoteRead | kAccessRemoteWrite;
constexpr std::uint64_t kIova = 0x10000;

// The same window with the next key.
RKey next(RKey rkey) {
  return RKey{(rkey.value() & ~0xffu) | ((rkey.value() + 1) & 0xff)};
}

std::string why(const Result<void>& result) {
  return result ? "" : result.error().why;
}

struct Table {
  explicit Table(std::uint32_t access = kBindable)
      : keys(table.add(kPd, bytes.data(), kIova, bytes.size(), access).value()) {}

  RKey add(WindowType type) { return table.add_window(kPd, type).value(); }
  Binding binding(RKey rkey, std::uint64_t offset = 100, std::uint64_t length = 50) const {
    return {rkey, keys.lkey, kIova + offset, length, kWindow};
  }
  Access find(const Accessor& who, RKey rkey, std::uint64_t address, std::uint32_t access = kAccessRemoteRead) const {
    return table.find_remote(who, rkey, address, 1, access);
  }

  std::vector<std::byte> bytes{1000};
  MrTable table{1};
  MemoryKeys keys;
};

}  // namespace

TEST_CASE("a window that was not bound opens nothing", "[queue][mw]") {
  const auto type = GENERATE(WindowType::Type1, WindowType::Type2);
  Table t;
  const RKey rkey = t.add(type);
  CHECK(t.find(kQp, rkey, kIova).fault == AccessFault::NotBound);
  CHECK(t.table.remove_window(rkey));
  CHECK(t.find(kQp, rkey, kIova).fault == AccessFault::UnknownKey);
  CHECK_FALSE(t.table.remove_window(rkey));
}

TEST_CASE("a bound window opens its range, with its rights, by its new key", "[queue][mw]") {
  const auto type = GENERATE(WindowType::Type1, WindowType::Type2);
  Table t;
  const RKey before = t.add(type);
  const RKey rkey = next(before);
  REQUIRE(t.table.bind(kQp, t.binding(rkey)));
  CHECK(t.find(kQp, rkey, kIova + 100).pointer == t.bytes.data() + 100);
  CHECK(t.find(kQp, rkey, kIova + 149, kAccessRemoteWrite).pointer == t.bytes.data() + 149);
  CHECK(t.find(kQp, rkey, kIova + 99).fault == AccessFault::OutOfBounds);
  CHECK(t.find(kQp, rkey, kIova + 150).fault == AccessFault::OutOfBounds);
  CHECK(t.find(kQp, rkey, kIova + 100, kAccessRemoteAtomic).fault == AccessFault::NoPermission);
  CHECK(t.find({kOtherPd, Qpn{0x11}}, rkey, kIova + 100).fault == AccessFault::WrongPd);
  CHECK(t.find(kQp, before, kIova + 100).fault == AccessFault::NotBound);
  CHECK(t.find(kQp, t.keys.rkey, kIova + 100).fault == AccessFault::NoPermission);  // the region itself opens nothing
}

TEST_CASE("a type 2 window serves the queue pair that bound it, a type 1 window all of its domain", "[queue][mw]") {
  Table t;
  const RKey one = next(t.add(WindowType::Type1));
  const RKey two = next(t.add(WindowType::Type2));
  REQUIRE(t.table.bind(kQp, t.binding(one)));
  REQUIRE(t.table.bind(kQp, t.binding(two)));
  CHECK(t.find(kOtherQp, one, kIova + 100));
  CHECK(t.find(kOtherQp, two, kIova + 100).fault == AccessFault::WrongQueuePair);
}

TEST_CASE("local rights mean nothing to a window, and do no harm", "[queue][mw]") {
  Table t;
  const RKey rkey = next(t.add(WindowType::Type2));
  Binding binding = t.binding(rkey);
  binding.access = kAccessLocalWrite | kAccessMwBind | kAccessRemoteWrite;
  REQUIRE(t.table.bind(kQp, binding));
  CHECK(t.find(kQp, rkey, kIova + 100, kAccessRemoteWrite));
  CHECK(t.find(kQp, rkey, kIova + 100, kAccessLocalWrite).fault == AccessFault::NoPermission);
}

TEST_CASE("a zero-based window counts from its own start", "[queue][mw]") {
  Table t;
  const RKey rkey = next(t.add(WindowType::Type2));
  Binding binding = t.binding(rkey);
  binding.access |= kAccessZeroBased;
  REQUIRE(t.table.bind(kQp, binding));
  CHECK(t.find(kQp, rkey, 0).pointer == t.bytes.data() + 100);
  CHECK(t.find(kQp, rkey, 49).pointer == t.bytes.data() + 149);
  CHECK(t.find(kQp, rkey, 50).fault == AccessFault::OutOfBounds);
}

TEST_CASE("a type 1 window is bound anew at once, or unbound by a length of 0", "[queue][mw]") {
  Table t;
  const RKey first = next(t.add(WindowType::Type1));
  const RKey second = next(first);
  REQUIRE(t.table.bind(kQp, t.binding(first)));
  REQUIRE(t.table.bind(kOtherQp, t.binding(second, 500)));
  CHECK(t.find(kQp, first, kIova + 100).fault == AccessFault::NotBound);
  CHECK(t.find(kQp, second, kIova + 500).pointer == t.bytes.data() + 500);
  REQUIRE(t.table.bind(kQp, {next(second), {}, 0, 0, 0}));
  CHECK(t.find(kQp, second, kIova + 500).fault == AccessFault::NotBound);
  CHECK(t.find(kQp, next(second), kIova + 500).fault == AccessFault::NotBound);
  CHECK(t.table.remove(t.keys.lkey));
}

TEST_CASE("a type 2 window is invalidated, and may then be bound again, by the same key or another", "[queue][mw]") {
  Table t;
  const RKey rkey = next(t.add(WindowType::Type2));
  REQUIRE(t.table.bind(kQp, t.binding(rkey)));
  REQUIRE(t.table.invalidate(kQp, rkey));
  CHECK(t.find(kQp, rkey, kIova + 100).fault == AccessFault::NotBound);
  REQUIRE(t.table.bind(kOtherQp, t.binding(rkey)));
  CHECK(t.find(kOtherQp, rkey, kIova + 100));
}

TEST_CASE("a region is busy while windows are bound to it, whichever way they go", "[queue][mw]") {
  Table t;
  const RKey one = next(t.add(WindowType::Type1));
  const RKey two = next(t.add(WindowType::Type2));
  const RKey three = next(t.add(WindowType::Type2));
  for (const RKey rkey : {one, two, three}) REQUIRE(t.table.bind(kQp, t.binding(rkey)));
  const auto refused = t.table.remove(t.keys.lkey);
  CHECK(errno_of(refused) == EBUSY);
  CHECK(why(refused) == "memory windows are bound to this region (3); invalidate them, or deallocate them, first");
  CHECK(errno_of(t.table.change(t.keys.lkey, {.place = {}, .pd = {}, .access = kAccessLocalWrite})) == EBUSY);
  CHECK(t.table.remove_window(one));
  REQUIRE(t.table.invalidate(kQp, two));
  t.table.unbind_all_of(kOtherQp.qpn);
  CHECK(errno_of(t.table.remove(t.keys.lkey)) == EBUSY);
  t.table.unbind_all_of(kQp.qpn);
  CHECK(t.table.remove(t.keys.lkey));
}

TEST_CASE("a queue pair's end leaves type 1 windows bound", "[queue][mw]") {
  Table t;
  const RKey rkey = next(t.add(WindowType::Type1));
  REQUIRE(t.table.bind(kQp, t.binding(rkey)));
  t.table.unbind_all_of(kQp.qpn);
  CHECK(t.find(kOtherQp, rkey, kIova + 100));
}

TEST_CASE("what may not be bound is refused, says why and changes nothing", "[queue][mw]") {
  Table t;
  const RKey one = next(t.add(WindowType::Type1));
  const RKey two = next(t.add(WindowType::Type2));
  const auto refused = [&](const Accessor& who, const Binding& binding) {
    const auto result = t.table.bind(who, binding);
    CHECK(errno_of(result) == EINVAL);
    return why(result);
  };
  const auto with = [&](RKey rkey, std::uint32_t access) {
    Binding binding = t.binding(rkey);
    binding.access = access;
    return binding;
  };
  CHECK(refused(kQp, t.binding(RKey{0x12345678})) == "rkey 0x12345678 is no window's");
  CHECK(refused({kOtherPd, Qpn{0x11}}, t.binding(two)) ==
        "the window belongs to another protection domain than the queue pair");
  CHECK(refused(kQp, with(two, kWindow | 1u << 15)) == "access bits 0x8000 are not known");
  CHECK(refused(kQp, with(one, kWindow | kAccessZeroBased)) == "a type 1 window cannot be zero-based");
  CHECK(refused(kQp, t.binding(two, 100, 0)) == "a type 2 window cannot be bound to 0 bytes");
  CHECK(refused(kQp, t.binding(two, 100, 901)) == "901 bytes at 0x10064 do not lie within the region");
  CHECK(refused(kQp, t.binding(one, ~std::uint64_t{0}, 1)) == "1 bytes at 0xffff do not lie within the region");
  Binding unknown = t.binding(two);
  unknown.region = LKey{0x777};
  CHECK(refused(kQp, unknown) == "lkey 0x777 is not registered");
  REQUIRE(t.table.bind(kQp, t.binding(two)));
  CHECK(why(t.table.bind(kQp, t.binding(two))) == "the window is bound; invalidate it first (IBV_WR_LOCAL_INV)");
  CHECK(t.find(kQp, two, kIova + 100));
}

TEST_CASE("a region must have been registered for windows", "[queue][mw]") {
  const auto refused = [](Table&& t, std::uint32_t access) {
    const RKey rkey = t.add(WindowType::Type2);
    Binding binding = t.binding(rkey);
    binding.access = access;
    return why(t.table.bind(kQp, binding));
  };
  CHECK(refused(Table(kAccessLocalWrite), kWindow) == "the region was registered without IBV_ACCESS_MW_BIND");
  CHECK(refused(Table(kBindable | kAccessZeroBased), kWindow) == "the region is zero-based");
  CHECK(refused(Table(kAccessMwBind), kAccessRemoteWrite) ==
        "a window for remote writes or atomics needs a region with IBV_ACCESS_LOCAL_WRITE");
  CHECK(refused(Table(kAccessMwBind), kAccessRemoteAtomic) ==
        "a window for remote writes or atomics needs a region with IBV_ACCESS_LOCAL_WRITE");
  CHECK(refused(Table(kAccessMwBind), kAccessRemoteRead).empty());
  Table t;
  const RKey elsewhere = t.table.add_window(kOtherPd, WindowType::Type2).value();
  CHECK(why(t.table.bind({kOtherPd, Qpn{1}}, t.binding(elsewhere))) ==
        "the region belongs to another protection domain than the window");
}

TEST_CASE("only a bound type 2 window can be invalidated, by its queue pair and its key", "[queue][mw]") {
  Table t;
  const RKey one = next(t.add(WindowType::Type1));
  const RKey two = next(t.add(WindowType::Type2));
  REQUIRE(t.table.bind(kQp, t.binding(one)));
  REQUIRE(t.table.bind(kQp, t.binding(two)));
  const auto refused = [&](const Accessor& who, RKey rkey) {
    const auto result = t.table.invalidate(who, rkey);
    CHECK(errno_of(result) == EINVAL);
    return why(result);
  };
  CHECK(refused(kQp, t.keys.rkey) == "is a region's, and only type 2 memory windows can be invalidated");
  CHECK(refused(kQp, RKey{t.keys.lkey.value()}) == "is a region's, and only type 2 memory windows can be invalidated");
  CHECK(refused(kQp, RKey{0x12345678}) == "is nothing that could be invalidated");
  CHECK(refused(kQp, one) == "is a type 1 window's, which only a bind invalidates");
  CHECK(refused({kOtherPd, Qpn{0x11}}, two) == "is a window's of another protection domain");
  CHECK(refused(kOtherQp, two) == "is a window's that another queue pair has bound");
  CHECK(refused(kQp, next(two)) == "is a window's that is not bound by it");
  CHECK(t.find(kQp, two, kIova + 100));
  REQUIRE(t.table.invalidate(kQp, two));
  CHECK(refused(kQp, two) == "is a window's that is not bound by it");
}

}  // namespace nicless::queue
