// SPDX-License-Identifier: MIT
// Goal: a receive queue hands lists out in the order posted, as copies, and its room follows the polled completions.
// Method: post, take, flush and reset; compare whole lists and all completions.
#include "queue/receive_queue.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

constexpr Qpn kQpn{0x4321};

struct RqFixture : CqFixture {
  RqFixture() : rq(3, 2, cq, kQpn) {}

  // As a responder completes a list it took.
  void complete(const RecvWqe& list) {
    cq.push({.wr_id = list.wr_id, .opcode = WcOpcode::Recv, .qp_num = kQpn, .credit = &rq.credit(), .credit_count = 1});
  }
  static Wc wc(std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
    return {.wr_id = wr_id, .status = status, .opcode = IBV_WC_RECV, .qp_num = kQpn.value()};
  }

  ReceiveQueue rq;
};

TEST_CASE("lists are taken in the order posted, as they were when posted", "[queue][rq]") {
  RqFixture f;
  std::vector<Sge> list{{.addr = 1, .length = 2, .lkey = LKey{3}}, {.addr = 4, .length = 5, .lkey = LKey{6}}};
  const std::vector<Sge> original = list;
  REQUIRE(f.rq.post(10, list));
  REQUIRE(f.rq.post(11, {}));
  list.assign(2, Sge{});

  RecvWqe taken;
  REQUIRE(f.rq.take(taken));
  CHECK(taken.wr_id == 10);
  CHECK(std::vector<Sge>(taken.sges().begin(), taken.sges().end()) == original);
  REQUIRE(f.rq.take(taken));
  CHECK(taken.wr_id == 11);
  CHECK(taken.sges().empty());
  CHECK_FALSE(f.rq.take(taken));
  CHECK(f.rq.empty());
}

TEST_CASE("a list with more entries than the queue takes is refused", "[queue][rq]") {
  RqFixture f;
  const std::vector<Sge> three(3);
  const auto refused = f.rq.post(1, three);
  REQUIRE(errno_of(refused) == EINVAL);
  CHECK(refused.error().why == "the list has 3 SGEs, the queue was made for 2");
  CHECK(f.rq.empty());
}

TEST_CASE("the room of a taken list comes back when its completion is polled", "[queue][rq]") {
  RqFixture f;
  for (std::uint64_t i = 1; i <= 3; ++i) REQUIRE(f.rq.post(i, {}));
  CHECK(errno_of(f.rq.post(4, {})) == ENOMEM);
  RecvWqe taken;
  REQUIRE(f.rq.take(taken));
  CHECK(errno_of(f.rq.post(4, {})) == ENOMEM);
  f.complete(taken);
  CHECK(errno_of(f.rq.post(4, {})) == ENOMEM);
  CHECK(f.poll_all() == std::vector{f.wc(1)});
  CHECK(f.rq.post(4, {}));
}

TEST_CASE("a flush completes all that is posted, in order", "[queue][rq]") {
  RqFixture f;
  for (std::uint64_t i = 1; i <= 3; ++i) REQUIRE(f.rq.post(i, {}));
  RecvWqe taken;
  REQUIRE(f.rq.take(taken));
  f.rq.flush();
  CHECK(f.rq.empty());
  CHECK(f.poll_all() == std::vector{f.wc(2, IBV_WC_WR_FLUSH_ERR), f.wc(3, IBV_WC_WR_FLUSH_ERR)});
  CHECK(f.rq.post(4, {}));
  CHECK(f.rq.post(5, {}));
  CHECK(errno_of(f.rq.post(6, {})) == ENOMEM);
}

TEST_CASE("a reset forgets lists and completions, and the queue has all its room", "[queue][rq]") {
  RqFixture f;
  for (std::uint64_t i = 1; i <= 3; ++i) REQUIRE(f.rq.post(i, {}));
  RecvWqe taken;
  REQUIRE(f.rq.take(taken));
  f.complete(taken);
  REQUIRE(f.rq.take(taken));
  f.rq.reset();
  CHECK(f.rq.empty());
  CHECK(f.poll_all().empty());
  for (std::uint64_t i = 4; i <= 6; ++i) CHECK(f.rq.post(i, {}));
  CHECK(errno_of(f.rq.post(7, {})) == ENOMEM);
}

TEST_CASE("a destroyed receive queue leaves no completion behind", "[queue][rq]") {
  CqFixture f;
  {
    ReceiveQueue rq(1, 1, f.cq, kQpn);
    REQUIRE(rq.post(1, {}));
    rq.flush();
  }
  CHECK(f.poll_all().empty());
}

}  // namespace
}  // namespace nicless::queue
