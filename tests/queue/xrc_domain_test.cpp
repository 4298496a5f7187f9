// SPDX-License-Identifier: MIT
// Goal: an XRC domain finds its own SRQs by number, and no others. Method: two domains; add, find, remove.
#include "queue/xrc_domain.h"

#include <catch2/catch.hpp>

#include "queue/shared_receive_queue.h"
#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

TEST_CASE("a domain finds an SRQ by its number, with the CQ and the PD that go with it", "[queue][xrc]") {
  CqFixture f;
  MrTable regions(1);
  SharedReceiveQueue srq(2, 1, f.async_events, &srq);
  const XrcDomain::Member member{&srq, &f.cq, &regions, PdId(3)};
  XrcDomain domain;
  const XrcDomain other;
  CHECK(domain.add(Srqn(0x8f1203), member));
  CHECK_FALSE(domain.add(Srqn(0x8f1203), {}));
  CHECK((domain.find(Srqn(0x8f1203)) == member));
  CHECK_FALSE(domain.find(Srqn(0)).has_value());
  CHECK_FALSE(other.find(Srqn(0x8f1203)).has_value());
}

TEST_CASE("an SRQ that was removed is not found any more; its number may come again", "[queue][xrc]") {
  XrcDomain domain;
  CHECK(domain.add(Srqn(1), {}));
  domain.remove(Srqn(1));
  CHECK_FALSE(domain.find(Srqn(1)).has_value());
  domain.remove(Srqn(1));
  CHECK(domain.add(Srqn(1), {}));
  CHECK(domain.find(Srqn(1)).has_value());
}

}  // namespace
}  // namespace nicless::queue
