// SPDX-License-Identifier: MIT
// Goal: the ring under both receive queues holds exactly its depth and keeps each list to itself. Method: run it round
// many times at several depths and compare every list.
#include "queue/receive_ring.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "tests/queue/print.h"

namespace nicless::queue {
namespace {

std::vector<Sge> list_of(std::uint64_t seq) {
  return std::vector<Sge>(seq % 4, Sge{.addr = seq, .length = 1, .lkey = LKey{1}});
}

TEST_CASE("every list comes out as it went in, whatever the depth", "[queue][ring]") {
  const std::uint32_t depth = GENERATE(1u, 2u, 3u, 6u, 8u);
  Credit credit;
  ReceiveRing ring(depth, 3);
  std::uint64_t taken_count = 0;
  for (std::uint64_t i = 0; i < 60; ++i) {
    REQUIRE(ring.post(i, list_of(i), credit));
    if (ring.waiting() < depth) continue;
    REQUIRE(errno_of(ring.post(i, {}, credit)) == ENOMEM);
    RecvWqe taken;
    REQUIRE(ring.take(taken));
    REQUIRE(taken.wr_id == taken_count);
    REQUIRE(std::vector<Sge>(taken.sges().begin(), taken.sges().end()) == list_of(taken_count));
    REQUIRE(errno_of(ring.post(i, {}, credit)) == ENOMEM);
    credit.release(1);
    ++taken_count;
  }
}

TEST_CASE("the deepest and widest ring costs nothing before it is used", "[queue][ring]") {
  Credit credit;
  ReceiveRing ring(kQueueDepthMax, kSgeMax);
  for (std::uint64_t i = 0; i < kQueueDepthMax; ++i) REQUIRE(ring.post(i, {}, credit));
  CHECK(errno_of(ring.post(0, {}, credit)) == ENOMEM);
}

TEST_CASE("a ring made for nothing takes nothing", "[queue][ring]") {
  Credit credit;
  ReceiveRing ring(0, 0);
  CHECK(errno_of(ring.post(1, {}, credit)) == ENOMEM);
  RecvWqe taken;
  CHECK_FALSE(ring.take(taken));
}

}  // namespace
}  // namespace nicless::queue
