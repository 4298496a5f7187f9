// SPDX-License-Identifier: MIT
// Goal: the engine runs whoever waits how: a program that polls, one that sleeps on a channel, and a target that calls
// nothing at all.
// Method: two queue pairs of this process over real sockets; waiting blocks in poll(2), bounded.
#include <catch2/catch.hpp>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

// A connected pair; the receiver's CQ has a channel.
struct Sleeper {
  Device device;
  Channel channel{device};
  Cq send_cq{device};
  Cq recv_cq{device, 256, channel.channel};
  Memory memory{device, 4096};
  Qp a{device, rc_attr(send_cq.cq, send_cq.cq)};
  Qp b{device, rc_attr(recv_cq.cq, recv_cq.cq)};

  Sleeper() {
    a.connect(b);
    b.connect(a);
  }
  void arm() { REQUIRE(ibv_req_notify_cq(recv_cq.cq, 0) == 0); }
  void move_one(std::uint64_t wr_id) {
    REQUIRE(b.post_recv(wr_id, {memory.sge(0, 100)}) == 0);
    REQUIRE(a.post_send(wr_id, {memory.sge(1000, 100)}) == 0);
  }
};

}  // namespace

TEST_CASE("a program that only sleeps on its channel gets its completions", "[poll]") {
  Sleeper s;
  for (std::uint64_t i = 0; i < 20; ++i) {
    s.arm();
    s.move_one(i);
    s.channel.wait_for_event();
    ibv_wc wc{};
    REQUIRE(ibv_poll_cq(s.recv_cq.cq, 1, &wc) == 1);
    CHECK(wc.wr_id == i);
    // Polls that find nothing, as many programs make after arming, do not send the progress thread away.
    CHECK(s.recv_cq.is_empty());
  }
}

TEST_CASE("a program that polled and then sleeps is served again", "[poll]") {
  Sleeper s;
  s.arm();
  for (int i = 0; i < 1000; ++i) CHECK(s.recv_cq.is_empty());  // counts as polling
  s.move_one(1);
  s.channel.wait_for_event();
}

TEST_CASE("poll_cq takes no more than there is room for, and refuses a negative room", "[poll]") {
  Device device;
  Cq cq(device);
  Qp qp(device, rc_attr(cq.cq, cq.cq));
  REQUIRE(qp.to_init() == 0);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(qp.post_recv(i, {}) == 0);
  REQUIRE(qp.to_error() == 0);
  std::array<ibv_wc, 8> wcs{};
  CHECK(ibv_poll_cq(cq.cq, 0, wcs.data()) == 0);
  CHECK(ibv_poll_cq(cq.cq, 2, wcs.data()) == 2);
  CHECK(ibv_poll_cq(cq.cq, 8, wcs.data()) == 1);
  CHECK(ibv_poll_cq(cq.cq, 8, wcs.data()) == 0);
  CHECK(ibv_poll_cq(cq.cq, -1, wcs.data()) < 0);
}
