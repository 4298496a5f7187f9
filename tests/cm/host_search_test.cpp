// SPDX-License-Identifier: MIT
// Goal: ids wait for a host as long as they may and not longer, one search serves all that wait for the same one, and
// what was found is known for a while. Method: a search in virtual time, with sights as the script has them.
#include "cm/host_search.h"

#include <catch2/catch.hpp>
#include <vector>

namespace nicless::cm {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Sight = HostSearch::Sight;
using Outcomes = std::vector<HostSearch::Outcome>;

HostSearch::Way way_to(std::uint8_t host) {
  HostSearch::Way way;
  way.to.bytes[15] = std::byte{host};
  return way;
}

// Only ever a name.
CmId* id(std::uintptr_t number) {
  return reinterpret_cast<CmId*>(number);
}

struct Searching : HostSearch {
  // Looks whenever it wants to, and sees nothing; returns when it looked.
  std::vector<Duration> run(Instant until) {
    std::vector<Duration> looked;
    while (next_deadline() && *next_deadline() <= until) {
      now = *next_deadline();
      while (const auto way = next_look(now)) {
        looked.push_back(now.time_since_epoch());
        on_sight(now, *way, Sight::Pending);
      }
      on_deadline(now);
    }
    now = until;
    return looked;
  }
  Outcomes outcomes() {
    Outcomes all;
    while (const auto outcome = next_outcome()) all.push_back(*outcome);
    return all;
  }
  Instant now{};
};

Instant at(Duration time) {
  return Instant(time);
}

TEST_CASE("a host is looked for often at first, then fifty times a second", "[host_search]") {
  Searching search;
  search.wait_for({}, way_to(1), id(1), at(seconds(1)));
  CHECK(search.run(at(milliseconds(60))) ==
        std::vector<Duration>{microseconds(100), microseconds(300), microseconds(700), microseconds(1500),
                              microseconds(3100), microseconds(6300), microseconds(12700), microseconds(25500),
                              microseconds(45500)});
  CHECK(search.outcomes().empty());
}

TEST_CASE("who waits for a host that is not found hears it at its deadline, each at its own", "[host_search]") {
  Searching search;
  search.wait_for({}, way_to(1), id(1), at(milliseconds(500)));
  search.wait_for({}, way_to(1), id(2), at(milliseconds(200)));
  search.run(at(milliseconds(199)));
  CHECK(search.outcomes().empty());
  search.run(at(milliseconds(200)));
  CHECK(search.outcomes() == Outcomes{{id(2), false}});
  CHECK(search.is_searching(way_to(1)));
  search.run(at(milliseconds(500)));
  CHECK(search.outcomes() == Outcomes{{id(1), false}});
  CHECK_FALSE(search.is_searching(way_to(1)));
  CHECK_FALSE(search.next_deadline().has_value());
  CHECK_FALSE(search.is_known(search.now, way_to(1)));
}

TEST_CASE("a host that is found is found for all that wait for it, and known for a while", "[host_search]") {
  Searching search;
  search.wait_for({}, way_to(1), id(1), at(seconds(1)));
  search.wait_for({}, way_to(1), id(2), at(seconds(1)));
  search.wait_for({}, way_to(2), id(3), at(seconds(1)));
  const Instant now = at(milliseconds(1));
  search.on_sight(now, way_to(1), Sight::Found);
  CHECK(search.outcomes() == Outcomes{{id(1), true}, {id(2), true}});
  CHECK_FALSE(search.is_searching(way_to(1)));
  CHECK(search.is_searching(way_to(2)));
  CHECK(search.is_known(now, way_to(1)));
  CHECK_FALSE(search.is_known(now, way_to(2)));
  CHECK_FALSE(search.is_known(now + HostSearch::kKnownFor, way_to(1)));
}

TEST_CASE("a host that comes in sight late is believed when it is seen twice", "[host_search]") {
  Searching search;
  search.wait_for({}, way_to(1), id(1), at(seconds(9)));
  search.run(at(seconds(3)));
  SECTION("the error comes a moment later") {
    search.on_sight(search.now, way_to(1), Sight::Found);
    search.on_sight(search.now + milliseconds(20), way_to(1), Sight::Lost);
    search.on_sight(search.now + milliseconds(40), way_to(1), Sight::Found);
    CHECK(search.outcomes().empty());
    CHECK(search.is_searching(way_to(1)));
  }
  SECTION("it stays") {
    search.on_sight(search.now, way_to(1), Sight::Found);
    CHECK(search.outcomes().empty());
    search.on_sight(search.now + milliseconds(20), way_to(1), Sight::Found);
    CHECK(search.outcomes() == Outcomes{{id(1), true}});
  }
}

TEST_CASE("an id that is forgotten hears nothing, and nothing is left of its search", "[host_search]") {
  Searching search;
  search.wait_for({}, way_to(1), id(1), at(seconds(1)));
  SECTION("while it waits") {
    search.forget(id(1));
  }
  SECTION("when it would have been told") {
    search.on_sight({}, way_to(1), Sight::Found);
    search.forget(id(1));
  }
  search.forget(id(2));  // which never waited
  CHECK(search.outcomes().empty());
  CHECK_FALSE(search.next_deadline().has_value());
}

TEST_CASE("so many hosts are known at most", "[host_search]") {
  Searching search;
  HostSearch::Way way;
  for (std::size_t i = 0; i <= HostSearch::kKnownMax; ++i) {
    way.to.bytes[0] = static_cast<std::byte>(i);
    way.to.bytes[1] = static_cast<std::byte>(i >> 8);
    search.on_sight({}, way, Sight::Found);
  }
  CHECK(search.is_known({}, way));
  CHECK_FALSE(search.is_known({}, HostSearch::Way{}));
}

}  // namespace
}  // namespace nicless::cm
