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

TEST_CASE("a program that looks at its memory between polls sees what its peer writes", "[poll]") {
  Sleeper s;
  // Longer than it takes to be known as a program that goes away, by a multiple.
  for (std::uint8_t round = 1; round <= 100; ++round) {
    s.memory.bytes[1000] = round;
    ibv_sge sge = s.memory.sge(1000, 1);
    ibv_send_wr wr{};
    wr.wr_id = round;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {s.memory.sge(0, 1).addr, s.memory.mr->rkey};
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(s.a.qp, &wr, &bad) == 0);
    const volatile std::uint8_t& target = s.memory.bytes[0];
    wait_until([&] { return target == round; });  // the thread's work
    CHECK(s.send_cq.take().wr_id == round);
  }
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
