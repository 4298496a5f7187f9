// SPDX-License-Identifier: MIT
// Goal: a shared receive queue hands lists out in order and warns once when few are left. Method: post and take;
// compare what comes out and all asynchronous events.
#include "queue/shared_receive_queue.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

struct SrqFixture {
  SrqFixture() : events(open_event_fd().value()), srq(4, 2, events, this) {
    for (std::uint64_t i = 1; i <= 4; ++i) srq.post(i, {}).value();
  }
  std::uint64_t take() {
    RecvWqe out;
    return srq.take(out) ? out.wr_id : 0;
  }

  AsyncEvents events;
  SharedReceiveQueue srq;
};

TEST_CASE("a shared queue hands lists out in order and then has none", "[queue][srq]") {
  SrqFixture f;
  CHECK(errno_of(f.srq.post(5, {})) == ENOMEM);
  const std::vector<Sge> three(3);
  CHECK(errno_of(f.srq.post(5, three)) == EINVAL);
  for (std::uint64_t i = 1; i <= 4; ++i) CHECK(f.take() == i);
  CHECK(f.take() == 0);
  CHECK_FALSE(f.events.take());
}

TEST_CASE("room in a shared queue comes back through its credit", "[queue][srq]") {
  SrqFixture f;
  REQUIRE(f.take() == 1);
  CHECK(errno_of(f.srq.post(5, {})) == ENOMEM);
  f.srq.credit().release(1);
  CHECK(f.srq.post(5, {}));
}

TEST_CASE("the limit raises one event, with the take that leaves fewer", "[queue][srq]") {
  SrqFixture f;
  REQUIRE(f.srq.set_limit(3));
  CHECK(f.srq.limit() == 3);
  f.take();
  CHECK_FALSE(f.events.take());
  f.take();
  CHECK(f.events.take() == AsyncEvent{.type = AsyncType::SrqLimitReached, .handle = &f});
  CHECK(f.srq.limit() == 0);
  f.take();
  CHECK_FALSE(f.events.take());
}

TEST_CASE("a limit above what is posted raises its event at once", "[queue][srq]") {
  SrqFixture f;
  f.take();
  REQUIRE(f.srq.set_limit(4));
  CHECK(f.events.take() == AsyncEvent{.type = AsyncType::SrqLimitReached, .handle = &f});
  CHECK(f.srq.limit() == 0);
}

TEST_CASE("a limit of 0 disarms, one above the depth is refused", "[queue][srq]") {
  SrqFixture f;
  REQUIRE(f.srq.set_limit(4));
  CHECK(errno_of(f.srq.set_limit(5)) == EINVAL);
  CHECK(f.srq.limit() == 4);
  REQUIRE(f.srq.set_limit(0));
  for (int i = 0; i < 4; ++i) f.take();
  CHECK_FALSE(f.events.take());
}

TEST_CASE("a destroyed shared queue leaves no event behind", "[queue][srq]") {
  AsyncEvents events(open_event_fd().value());
  {
    SharedReceiveQueue srq(2, 1, events, &events);
    REQUIRE(srq.post(1, {}));
    REQUIRE(srq.set_limit(1));
    RecvWqe out;
    REQUIRE(srq.take(out));
  }
  CHECK_FALSE(events.take());
}

}  // namespace
}  // namespace nicless::queue
