// SPDX-License-Identifier: MIT
// Goal: Ring is a FIFO at every fill level and across its growth. Method: compare with std::deque over a seeded walk.
#include "queue/ring.h"

#include <catch2/catch.hpp>
#include <deque>

#include "queue/rng.h"

namespace nicless::queue {
namespace {

bool same(const Ring<int>& ring, const std::deque<int>& model) {
  if (ring.size() != model.size() || ring.empty() != model.empty()) return false;
  for (std::size_t i = 0; i < model.size(); ++i) {
    if (ring[i] != model[i]) return false;
  }
  return true;
}

TEST_CASE("a ring does what a deque does, through growth, wrap and erasure", "[queue][ring]") {
  Rng rng(GENERATE(1, 2, 3));
  Ring<int> ring;
  std::deque<int> model;
  for (int step = 0; step < 5000; ++step) {
    const std::uint32_t choice = rng.below(100);
    if (choice < 52) {
      ring.push_back(step);
      model.push_back(step);
    } else if (choice < 99 && !model.empty()) {
      REQUIRE(ring.front() == model.front());
      ring.pop_front();
      model.pop_front();
    } else {
      const auto odd = [](int value) { return value % 2 != 0; };
      CHECK(ring.erase_if(odd) == std::erase_if(model, odd));
    }
    REQUIRE(same(ring, model));
  }
}

}  // namespace
}  // namespace nicless::queue
