// SPDX-License-Identifier: MIT
// Goal: a Link does to datagrams exactly what its configuration and its exact tools say, and the same again for the
// same seed. Method: send numbered datagrams at known instants, then look at what can be taken when.
#include "wire/link.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <utility>
#include <vector>

namespace nicless::wire {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
constexpr queue::Instant kStart{};

LinkDatagram numbered(std::uint8_t number, std::size_t size = 8) {
  LinkDatagram datagram;
  datagram.bytes.assign(size, std::byte{0xa5});
  datagram.bytes[0] = std::byte{number};
  return datagram;
}

int number_of(const LinkDatagram& datagram) {
  return std::to_integer<int>(datagram.bytes[0]);
}

void send_numbers(Link& link, queue::Instant now, int count) {
  for (int i = 0; i < count; ++i) link.send(now, numbered(static_cast<std::uint8_t>(i)));
}

std::vector<int> take_all(Link& link, queue::Instant now) {
  std::vector<int> numbers;
  while (auto datagram = link.take(now)) numbers.push_back(number_of(*datagram));
  return numbers;
}

// Everything that comes out, with when.
std::vector<std::pair<queue::Instant, LinkDatagram>> drain(Link& link) {
  std::vector<std::pair<queue::Instant, LinkDatagram>> all;
  while (const auto when = link.next_arrival()) all.emplace_back(*when, *link.take(*when));
  return all;
}

TEST_CASE("a perfect link delivers everything in order after its latency", "[link]") {
  Link link({.latency = microseconds(10)});
  CHECK(link.is_idle());
  send_numbers(link, kStart, 3);
  CHECK(!link.is_idle());
  CHECK(link.next_arrival() == kStart + microseconds(10));
  CHECK(take_all(link, kStart + microseconds(9)).empty());
  CHECK(take_all(link, kStart + microseconds(10)) == std::vector{0, 1, 2});
  CHECK(link.is_idle());
  CHECK(link.counters() == LinkCounters{.sent = 3, .delivered = 3});
}

TEST_CASE("jitter delays but does not reorder", "[link]") {
  Link link({.latency = microseconds(10), .jitter = microseconds(100)});
  for (int i = 0; i < 50; ++i) link.send(kStart + microseconds(i), numbered(static_cast<std::uint8_t>(i)));
  int expected = 0;
  for (const auto& [when, datagram] : drain(link)) {
    CHECK(number_of(datagram) == expected);
    CHECK(when >= kStart + microseconds(expected + 10));
    CHECK(when <= kStart + microseconds(50 + 10 + 100));
    ++expected;
  }
  CHECK(expected == 50);
}

TEST_CASE("each fault strikes about as often as asked", "[link]") {
  constexpr int kCount = 10000;
  Link link({.loss = 0.1, .duplicate = 0.2, .reorder = 0.05, .corrupt = 0.02});
  for (int i = 0; i < kCount; ++i) link.send(kStart, numbered(0));
  drain(link);
  const LinkCounters& counters = link.counters();
  const auto near = [&](std::uint64_t value, double share) {
    return std::abs(static_cast<double>(value) - share * kCount) < 0.1 * share * kCount + 30;
  };
  CHECK(near(counters.lost, 0.1));
  CHECK(near(counters.duplicated, 0.9 * 0.2));
  CHECK(near(counters.reordered, 0.9 * 0.05));
  CHECK(near(counters.corrupted, 0.9 * 0.02));
  CHECK(counters.delivered == counters.sent - counters.lost + counters.duplicated);
}

TEST_CASE("the same seed gives the same fate, another seed another", "[link]") {
  const auto run = [](std::uint64_t seed) {
    Link link({.seed = seed, .jitter = microseconds(5), .loss = 0.3, .duplicate = 0.3, .reorder = 0.3, .corrupt = 0.3});
    send_numbers(link, kStart, 100);
    return drain(link);
  };
  CHECK(run(7) == run(7));
  CHECK(run(7) != run(8));
}

TEST_CASE("a corrupted datagram differs in exactly one bit", "[link]") {
  Link link({.corrupt = 1});
  for (int i = 0; i < 20; ++i) {
    link.send(kStart, numbered(0x5a, 40));
    const auto out = link.take(kStart);
    REQUIRE(out);
    const LinkDatagram sent = numbered(0x5a, 40);
    int flipped = 0;
    for (std::size_t byte = 0; byte < sent.bytes.size(); ++byte) {
      flipped += __builtin_popcount(std::to_integer<unsigned>(sent.bytes[byte] ^ out->bytes[byte]));
    }
    CHECK(flipped == 1);
  }
}

TEST_CASE("a reordered datagram is overtaken by those that follow within its delay", "[link]") {
  Link link({.reorder = 1, .reorder_delay = microseconds(50)});
  link.send(kStart, numbered(1));
  CHECK(link.next_arrival() == kStart + microseconds(50));
  Link mixed({.seed = 3, .reorder = 0.5, .reorder_delay = microseconds(50)});
  send_numbers(mixed, kStart, 20);
  const auto prompt = take_all(mixed, kStart);
  const auto late = take_all(mixed, kStart + microseconds(50));
  CHECK(prompt.size() + late.size() == 20);
  CHECK(!prompt.empty());
  CHECK(!late.empty());
  CHECK(std::is_sorted(prompt.begin(), prompt.end()));
  CHECK(std::is_sorted(late.begin(), late.end()));
}

TEST_CASE("a line of limited speed spaces datagrams by their size", "[link]") {
  Link link({.latency = microseconds(1), .bytes_per_second = 1'000'000});  // one byte a microsecond
  link.send(kStart, numbered(0, 100));
  link.send(kStart, numbered(1, 50));
  const auto out = drain(link);
  REQUIRE(out.size() == 2);
  CHECK(out[0].first == kStart + microseconds(101));
  CHECK(out[1].first == kStart + microseconds(151));
  link.send(kStart + milliseconds(1), numbered(2, 10));  // the line was free again
  CHECK(link.next_arrival() == kStart + milliseconds(1) + microseconds(11));
}

TEST_CASE("what does not fit the queue or the MTU vanishes and is counted", "[link]") {
  Link link({.mtu_bytes = 100, .queue_bytes = 150});
  link.send(kStart, numbered(0, 101));
  link.send(kStart, numbered(1, 100));
  link.send(kStart, numbered(2, 51));
  link.send(kStart, numbered(3, 50));
  CHECK(take_all(link, kStart) == std::vector{1, 3});
  link.send(kStart, numbered(4, 100));  // taken datagrams make room
  CHECK(take_all(link, kStart) == std::vector{4});
  CHECK(link.counters() == LinkCounters{.sent = 5, .delivered = 3, .overflowed = 1, .oversized = 1});
}

TEST_CASE("drop_next drops the first that matches, once a call", "[link]") {
  Link link({});
  const auto is_one = [](const LinkDatagram& datagram) { return number_of(datagram) == 1; };
  link.drop_next(is_one);
  link.drop_next(is_one);
  for (const std::uint8_t number : {0, 1, 2, 1, 1}) link.send(kStart, numbered(number));
  CHECK(take_all(link, kStart) == std::vector{0, 2, 1});
  CHECK(link.counters().lost == 2);
}

TEST_CASE("held datagrams wait for release and keep their order", "[link]") {
  Link link({.latency = microseconds(10)});
  link.hold();
  send_numbers(link, kStart, 3);
  CHECK(!link.next_arrival());
  CHECK(!link.is_idle());
  link.release(kStart + milliseconds(1));
  CHECK(link.next_arrival() == kStart + milliseconds(1) + microseconds(10));
  link.send(kStart + milliseconds(1), numbered(3));
  CHECK(take_all(link, kStart + milliseconds(2)) == std::vector{0, 1, 2, 3});
}

TEST_CASE("a recorded datagram can be replayed past every fault", "[link]") {
  Link link({.loss = 1});
  link.record(true);
  link.send(kStart, numbered(9));
  link.record(false);
  link.send(kStart, numbered(10));
  REQUIRE(link.recorded() == std::vector{numbered(9)});
  CHECK(link.is_idle());
  link.replay(kStart, link.recorded().front());
  CHECK(take_all(link, kStart) == std::vector{9});
}

}  // namespace
}  // namespace nicless::wire
