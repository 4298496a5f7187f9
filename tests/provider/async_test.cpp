// SPDX-License-Identifier: MIT
// Goal: asynchronous events are fetched, waited for and acknowledged as ibv_get_async_event(3) says, and what an
// overrun CQ does to its queue pairs reaches the program. Method: the public verbs API; events that a program brings
// about by itself.
#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

bool is_readable(const Device& device) {
  pollfd waited{device.context->async_fd, POLLIN, 0};
  return poll(&waited, 1, 0) == 1;
}

void set_nonblocking(const Device& device) {
  REQUIRE(fcntl(device.context->async_fd, F_SETFL, O_NONBLOCK) == 0);
}

ibv_async_event take(const Device& device) {
  ibv_async_event event{};
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  return event;
}

// A queue pair that raises SQ_DRAINED each time it is asked to.
struct Drainer {
  Drainer(Device& device, Cq& cq) : qp(device, rc_attr(cq.cq, cq.cq)), peer(device, rc_attr(cq.cq, cq.cq)) {
    qp.connect(peer);
  }
  void drain() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_SQD;
    attr.en_sqd_async_notify = 1;
    REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
  }
  Qp qp;
  Qp peer;
};

}  // namespace

TEST_CASE("a descriptor that does not block says EAGAIN, and becomes readable with an event", "[async]") {
  Device device;
  set_nonblocking(device);
  ibv_async_event event{};
  errno = 0;
  CHECK(ibv_get_async_event(device.context, &event) == -1);
  CHECK(errno == EAGAIN);
  CHECK_FALSE(is_readable(device));

  Cq cq(device);
  Drainer drainer(device, cq);
  drainer.drain();
  CHECK(is_readable(device));
  event = take(device);
  CHECK(event.event_type == IBV_EVENT_SQ_DRAINED);
  CHECK(event.element.qp == drainer.qp.qp);
  ibv_ack_async_event(&event);
  CHECK_FALSE(is_readable(device));
}

TEST_CASE("a thread that waits for an event gets the one that comes", "[async]") {
  Device device;
  Cq cq(device);
  Drainer drainer(device, cq);
  ibv_async_event event{};
  std::thread waiter([&] {
    event = take(device);
    ibv_ack_async_event(&event);
  });
  drainer.drain();
  waiter.join();
  CHECK(event.event_type == IBV_EVENT_SQ_DRAINED);
}

TEST_CASE("destroying a queue pair waits for its events that were got and not acknowledged", "[async]") {
  Device device;
  Cq cq(device);
  Drainer drainer(device, cq);
  drainer.drain();
  ibv_async_event event = take(device);
  std::atomic<bool> is_acknowledged{false};
  std::atomic<bool> was_acknowledged_when_destroyed{false};
  std::thread destroyer([&] {
    CHECK(ibv_destroy_qp(drainer.qp.qp) == 0);
    was_acknowledged_when_destroyed = is_acknowledged.load();
  });
  is_acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
  CHECK(was_acknowledged_when_destroyed);
  drainer.qp.qp = nullptr;
}

TEST_CASE("an event that nobody took goes with its queue pair", "[async]") {
  Device device;
  Cq cq(device);
  {
    Drainer drainer(device, cq);
    drainer.drain();
    CHECK(is_readable(device));
  }
  CHECK_FALSE(is_readable(device));
}

TEST_CASE("an overrun CQ takes the queue pair whose completion it lost with it, and no other", "[async][overrun]") {
  Device device;
  set_nonblocking(device);
  Cq small(device, 2);
  Cq roomy(device);
  Memory memory(device, 64);
  Qp sender(device, rc_attr(small.cq, roomy.cq));
  Qp receiver(device, rc_attr(roomy.cq, roomy.cq));
  Qp idle(device, rc_attr(small.cq, small.cq));
  sender.connect(receiver);
  receiver.connect(sender);
  REQUIRE(idle.to_init() == 0);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(receiver.post_recv(i, {memory.sge(0, 8)}) == 0);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(sender.post_send(10 + i, {memory.sge(8, 8)}) == 0);
  for (int i = 0; i < 3; ++i) CHECK(roomy.take().status == IBV_WC_SUCCESS);
  wait_until([&] { return roomy.is_empty() && is_readable(device); });

  ibv_async_event event = take(device);
  CHECK(event.event_type == IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == small.cq);
  ibv_ack_async_event(&event);
  wait_until([&] { return is_readable(device); });
  event = take(device);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == sender.qp);
  ibv_ack_async_event(&event);

  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(sender.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_ERR);
  REQUIRE(ibv_query_qp(receiver.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  REQUIRE(ibv_query_qp(idle.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_INIT);
  ibv_wc wc{};
  CHECK(ibv_poll_cq(small.cq, 1, &wc) < 0);

  REQUIRE(idle.to_error() == 0);  // its receive would complete into the CQ
  REQUIRE(idle.post_recv(1, {}) == 0);
  event = take(device);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == idle.qp);
  ibv_ack_async_event(&event);
}

TEST_CASE("a queue pair of an SRQ that goes to ERR says that it takes no more receives", "[async][srq]") {
  Device device;
  Cq cq(device);
  ibv_srq_init_attr srq_attr{};
  srq_attr.attr = {4, 1, 0};
  ibv_srq* const srq = ibv_create_srq(device.pd, &srq_attr);
  REQUIRE(srq != nullptr);
  {
    ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
    attr.srq = srq;
    Qp qp(device, attr);
    REQUIRE(qp.to_init() == 0);
    REQUIRE(qp.to_error() == 0);
    ibv_async_event event = take(device);
    CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
    CHECK(event.element.qp == qp.qp);
    ibv_ack_async_event(&event);
    REQUIRE(qp.to_error() == 0);  // again: nothing new
    CHECK_FALSE(is_readable(device));
  }
  CHECK(ibv_destroy_srq(srq) == 0);
}
