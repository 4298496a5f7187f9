// SPDX-License-Identifier: MIT
// Goal: whatever the network does, connected queue pairs move every message exactly once and in order, and a
// connection that breaks flushes all it had. Method: seeded random traffic in virtual time under the oracle's eyes;
// seeds.h says which seeds.
#include <catch2/catch.hpp>

#include "tests/sim/seeds.h"
#include "tests/sim/traffic.h"

namespace nicless::sim {
namespace {

TEST_CASE("random traffic over a bad network completes exactly once, in order, and touches nothing else", "[rc][sim]") {
  for (const std::uint64_t seed : seeds_to_run()) {
    const TrafficConfig config = TrafficConfig::of(seed);
    const TrafficResult result = Traffic(config).run();
    CHECK(result.completions > 0);
  }
}

TEST_CASE("the same seed gives the same run", "[rc][sim]") {
  const auto run = [] {
    const TrafficResult result = Traffic(TrafficConfig::of(3)).run();
    return std::tuple(result.completions, result.datagrams, result.virtual_time.count());
  };
  CHECK(run() == run());
}

TEST_CASE("on a network that loses a third of all packets a connection may break, but never lies", "[rc][sim]") {
  int broken = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TrafficConfig config = TrafficConfig::of(seed);
    config.faults = {.latency = std::chrono::microseconds(5), .loss = 0.33, .duplicate = 0.1, .reorder = 0.1};
    config.connection.retry_cnt = static_cast<std::uint8_t>(seed % 4);
    config.connection.rnr_retry = static_cast<std::uint8_t>(seed % 8);
    config.may_break = true;
    broken += Traffic(config).run().broken;
  }
  CHECK(broken > 0);
}

TEST_CASE("on a perfect network with receives in time nothing is sent twice", "[rc][sim]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TrafficConfig config = TrafficConfig::of(seed);
    config.faults = {};
    config.ending = Ending::Clean;
    config.late_receives = 0;
    CHECK(!Traffic(config).run().broken);
  }
}

}  // namespace
}  // namespace nicless::sim
