// SPDX-License-Identifier: MIT
// Goal: counts are told under the names that people know them by, once each, and the sentence has those that counted.
// Method: counts by hand.
#include "provider/port_counters.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace nicless::provider {
namespace {

PortCounters some() {
  PortCounters counters;
  counters.engine.datagrams_out = 12;
  counters.engine.datagrams_in = 10;
  counters.engine.bad_icrc = 3;
  counters.queue_pairs.duplicate = 1;
  return counters;
}

TEST_CASE("each count has a name of its own", "[port_counters]") {
  std::set<std::string> names;
  const auto all = named(some());
  for (const NamedCount& each : all) names.insert(each.name);
  CHECK(names.size() == all.size());
  CHECK(names.contains("sent_pkts"));
  CHECK(names.contains("retry_exceeded_err"));
}

TEST_CASE("counts of several ports add up, each to its own", "[port_counters]") {
  PortCounters sum = some();
  add(some(), sum);
  const auto once = named(some());
  const auto twice = named(sum);
  REQUIRE(once.size() == twice.size());
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == NamedCount{once[i].name, 2 * once[i].count});
}

TEST_CASE("the sentence says what was sent and received, and whatever else happened", "[port_counters]") {
  CHECK(summary({}) == "packets: 0 sent, 0 received");
  CHECK(summary(some()) == "packets: 12 sent, 10 received; rx_icrc_encapsulated 3, duplicate_request 1");
}

}  // namespace
}  // namespace nicless::provider
