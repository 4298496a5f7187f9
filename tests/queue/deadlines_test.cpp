// SPDX-License-Identifier: MIT
// Goal: the earliest deadline of many is known after any change. Method: a few by hand, then random changes beside a
// plain list that is searched.
#include "queue/deadlines.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "queue/rng.h"

namespace nicless::queue {
namespace {

Instant at(std::int64_t milliseconds) {
  return Instant{std::chrono::milliseconds(milliseconds)};
}

}  // namespace

TEST_CASE("the earliest deadline is the one to meet") {
  Deadlines<int> deadlines;
  CHECK(!deadlines.next());
  deadlines.set(1, std::nullopt);
  CHECK(!deadlines.next());
  deadlines.set(2, at(7));
  deadlines.set(0, at(9));
  CHECK(deadlines.next() == at(7));
  deadlines.set(2, std::nullopt);
  CHECK(deadlines.next() == at(9));
  deadlines.erase(0);
  deadlines.erase(0);
  CHECK(!deadlines.next());
}

TEST_CASE("a key is due from its deadline on, until it is set anew") {
  Deadlines<int> deadlines;
  deadlines.set(5, at(3));
  CHECK(!deadlines.due(at(2)));
  CHECK(deadlines.due(at(3)) == 5);
  CHECK(deadlines.due(at(4)) == 5);
  deadlines.set(5, std::nullopt);
  CHECK(!deadlines.due(at(4)));
}

TEST_CASE("of keys with the same deadline each is due") {
  Deadlines<int> deadlines;
  std::vector<int> due;
  for (int key = 0; key < 4; ++key) deadlines.set(key, at(1));
  while (const auto key = deadlines.due(at(1))) {
    due.push_back(*key);
    deadlines.erase(*key);
  }
  CHECK(due == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("after any change the next deadline is what a search finds") {
  Rng rng(7);
  Deadlines<std::size_t> deadlines;
  std::vector<std::optional<Instant>> list(20);
  for (int change = 0; change < 5000; ++change) {
    const std::size_t key = rng.below(20);
    list[key] = rng.chance(0.2) ? std::nullopt : std::optional(at(rng.below(50)));
    if (!list[key] && rng.chance(0.5)) {
      deadlines.erase(key);
    } else {
      deadlines.set(key, list[key]);
    }
    std::optional<Instant> next;
    for (const auto& deadline : list) next = earliest(next, deadline);
    REQUIRE(deadlines.next() == next);
  }
}

}  // namespace nicless::queue
