// SPDX-License-Identifier: MIT
// Goal: the thread lingers after a datagram as long as another follows, and hardly ever where none does.
// Method: the value alone, in virtual time.
#include "wire/io/linger.h"

#include <catch2/catch.hpp>

using namespace nicless;
using nicless::wire::Linger;

namespace {

constexpr queue::Instant kNow{std::chrono::seconds(1)};

// A datagram is served, and nothing follows.
void linger_in_vain(Linger& linger) {
  linger.on_served(kNow);
  linger.on_nothing(kNow + Linger::kFor);
}

}  // namespace

TEST_CASE("it looks again until the time is over", "[linger]") {
  Linger linger;
  CHECK_FALSE(linger.on_nothing(kNow));
  linger.on_served(kNow);
  CHECK(linger.is_on());
  CHECK(linger.on_nothing(kNow + Linger::kFor - queue::Duration(1)));
  CHECK_FALSE(linger.on_nothing(kNow + Linger::kFor));
  CHECK_FALSE(linger.is_on());
}

TEST_CASE("a datagram that follows lets it begin anew", "[linger]") {
  Linger linger;
  linger.on_served(kNow);
  linger.on_served(kNow + Linger::kFor / 2);
  CHECK(linger.on_nothing(kNow + Linger::kFor));
  CHECK_FALSE(linger.on_nothing(kNow + Linger::kFor + Linger::kFor / 2));
}

TEST_CASE("after some in vain it sleeps at once, and tries again now and then", "[linger]") {
  Linger linger;
  for (std::uint32_t i = 0; i < Linger::kVainMax; ++i) {
    linger.on_served(kNow);
    CHECK(linger.is_on());
    linger.on_nothing(kNow + Linger::kFor);
  }
  for (std::uint32_t i = 1; i < Linger::kProbeEach; ++i) {
    linger.on_served(kNow);
    REQUIRE_FALSE(linger.is_on());
  }
  linger.on_served(kNow);
  CHECK(linger.is_on());
}

TEST_CASE("one that was of use makes up for those in vain", "[linger]") {
  Linger linger;
  for (std::uint32_t i = 1; i < Linger::kVainMax; ++i) linger_in_vain(linger);
  linger.on_served(kNow);
  linger.on_served(kNow);
  for (std::uint32_t i = 1; i < Linger::kVainMax; ++i) linger_in_vain(linger);
  linger.on_served(kNow);
  CHECK(linger.is_on());
}

TEST_CASE("it stays for as long as its owner wants, and what it stayed for ends it", "[linger]") {
  Linger linger(Linger::kFor / 5);
  linger.on_served(kNow);
  CHECK(linger.on_nothing(kNow + Linger::kFor / 5 - queue::Duration(1)));
  linger.on_found();
  CHECK_FALSE(linger.is_on());
  for (std::uint32_t i = 1; i < Linger::kVainMax; ++i) linger_in_vain(linger);
  linger.on_served(kNow);
  linger.on_found();
  linger_in_vain(linger);
  linger.on_served(kNow);
  CHECK(linger.is_on());
}
