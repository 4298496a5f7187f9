// SPDX-License-Identifier: MIT
// Goal: over a bad network what nobody acknowledges arrives whole, unchanged, or not at all, and over a connection in
// order and once; the completions of its sender tell the truth. Method: seeded random traffic in virtual time; seeds.h
// says which seeds.
#include <catch2/catch.hpp>

#include "tests/sim/seeds.h"
#include "tests/sim/unreliable_traffic.h"

namespace nicless::sim {
namespace {

TEST_CASE("messages of unreliable connections arrive whole, in order and once, or not at all", "[uc][sim]") {
  for (const std::uint64_t seed : seeds_to_run()) {
    CHECK(UnreliableTraffic(UnreliableConfig::of(seed, wire::Transport::Uc)).run().sent > 0);
  }
}

TEST_CASE("datagrams arrive whole, from whom they say, or not at all", "[ud][sim]") {
  for (const std::uint64_t seed : seeds_to_run()) {
    CHECK(UnreliableTraffic(UnreliableConfig::of(seed, wire::Transport::Ud)).run().sent > 0);
  }
}

TEST_CASE("on a perfect network with receives in time every unreliable message arrives", "[uc][ud][sim]") {
  const wire::Transport transport = GENERATE(wire::Transport::Uc, wire::Transport::Ud);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    UnreliableConfig config = UnreliableConfig::of(seed, transport);
    config.faults = {};
    config.mistakes = 0;
    config.is_short = false;
    config.receives_first = true;
    config.side.recv_depth = 1000;
    const UnreliableResult result = UnreliableTraffic(config).run();
    CHECK(result.arrived > 0);
    CHECK(result.arrived == result.due);
  }
}

}  // namespace
}  // namespace nicless::sim
