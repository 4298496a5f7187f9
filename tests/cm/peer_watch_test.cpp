// SPDX-License-Identifier: MIT
// Goal: each peer has its turn once an interval, however many connections ask for it, unless it has spoken. Method:
// virtual time.
#include "cm/peer_watch.h"

#include <catch2/catch.hpp>

namespace nicless::cm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

wire::Endpoint peer(std::uint16_t port) {
  return {{}, port};
}

TEST_CASE("nobody to watch, nothing due", "[peer_watch]") {
  PeerWatch watch;
  CHECK_FALSE(watch.next_deadline());
  CHECK_FALSE(watch.next_due(Instant{} + seconds(100)));
}

TEST_CASE("a peer's turn comes an interval after it was first watched, and again and again", "[peer_watch]") {
  PeerWatch watch;
  const Instant start{};
  watch.watch(start, peer(1), seconds(1));
  watch.watch(start + milliseconds(900), peer(1), seconds(1));
  CHECK(watch.next_deadline() == start + seconds(1));
  CHECK_FALSE(watch.next_due(start + milliseconds(999)));
  CHECK(watch.next_due(start + seconds(1)) == peer(1));
  CHECK_FALSE(watch.next_due(start + seconds(1)));
  CHECK(watch.next_due(start + seconds(2)) == peer(1));
}

TEST_CASE("peers have their turns in order, and one that is forgotten has none", "[peer_watch]") {
  PeerWatch watch;
  const Instant start{};
  watch.watch(start + milliseconds(20), peer(2), seconds(1));
  watch.watch(start, peer(1), seconds(1));
  watch.watch(start + milliseconds(10), peer(3), seconds(1));
  watch.forget(peer(3));
  watch.forget(peer(4));
  const Instant later = start + milliseconds(1500);
  CHECK(watch.next_due(later) == peer(1));
  CHECK(watch.next_due(later) == peer(2));
  CHECK_FALSE(watch.next_due(later));
}

TEST_CASE("a peer that has spoken has its turn an interval later; one that is not watched has none", "[peer_watch]") {
  PeerWatch watch;
  const Instant start{};
  watch.watch(start, peer(1), seconds(1));
  watch.on_heard(start + milliseconds(700), peer(1));
  watch.on_heard(start + milliseconds(700), peer(2));
  CHECK(watch.next_deadline() == start + milliseconds(1700));
  CHECK_FALSE(watch.next_due(start + milliseconds(1699)));
  CHECK(watch.next_due(start + milliseconds(1700)) == peer(1));
  CHECK(watch.next_deadline() == start + milliseconds(2700));
}

TEST_CASE("the shortest interval that was asked for is kept", "[peer_watch]") {
  PeerWatch watch;
  const Instant start{};
  watch.watch(start, peer(1), milliseconds(1500));
  watch.watch(start, peer(1), milliseconds(1000));
  watch.watch(start, peer(1), milliseconds(1500));
  CHECK(watch.next_due(start + milliseconds(1500)) == peer(1));
  CHECK(watch.next_deadline() == start + milliseconds(2500));
}

}  // namespace
}  // namespace nicless::cm
