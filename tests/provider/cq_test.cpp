// SPDX-License-Identifier: MIT
// Goal: completion queues and channels keep the promises of ibv_create_cq(3), ibv_get_cq_event(3), ibv_poll_cq(3).
// Method: the public verbs API; a queue pair that goes to ERR makes completions without a peer.
#include <fcntl.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

// A queue pair whose receives are flushed as they are posted: each makes a completion.
struct Flusher {
  Flusher(Device& device, Cq& cq) : qp(device, rc_attr(cq.cq, cq.cq)) {
    REQUIRE(qp.to_init() == 0);
    REQUIRE(qp.to_error() == 0);
  }
  void complete(std::uint64_t wr_id) { REQUIRE(qp.post_recv(wr_id, {}) == 0); }
  Qp qp;
};

}  // namespace

TEST_CASE("a CQ of no entries, of too many, or with a wrong vector is refused", "[cq]") {
  Device device;
  CHECK(ibv_create_cq(device.context, 0, nullptr, nullptr, 0) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(ibv_create_cq(device.context, 1 << 30, nullptr, nullptr, 0) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(ibv_create_cq(device.context, 1, nullptr, nullptr, device.context->num_comp_vectors) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("a CQ is busy while a queue pair uses it, a channel while a CQ does", "[cq]") {
  Device device;
  Channel channel(device);
  Cq cq(device, 16, channel.channel);
  {
    const Qp qp(device, rc_attr(cq.cq, cq.cq));
    CHECK(ibv_destroy_cq(cq.cq) == EBUSY);
  }
  CHECK(ibv_destroy_comp_channel(channel.channel) == EBUSY);
}

TEST_CASE("an armed CQ makes its channel readable once, and the event names the CQ", "[cq]") {
  Device device;
  Channel channel(device);
  Cq cq(device, 16, channel.channel);
  Flusher flusher(device, cq);
  flusher.complete(1);
  CHECK_FALSE(channel.is_readable());  // not armed
  REQUIRE(ibv_req_notify_cq(cq.cq, 0) == 0);
  flusher.complete(2);
  flusher.complete(3);
  CHECK(channel.is_readable());

  ibv_cq* from = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(channel.channel, &from, &context) == 0);
  CHECK(from == cq.cq);
  CHECK(context == &cq);
  CHECK_FALSE(channel.is_readable());
  ibv_ack_cq_events(cq.cq, 1);
  for (std::uint64_t wr_id = 1; wr_id <= 3; ++wr_id) {
    const ibv_wc wc = cq.take();
    CHECK(wc.wr_id == wr_id);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_CASE("a channel that does not block says EAGAIN", "[cq]") {
  Device device;
  Channel channel(device);
  REQUIRE(fcntl(channel.channel->fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  CHECK(ibv_get_cq_event(channel.channel, &from, &context) == -1);
  CHECK(errno == EAGAIN);
}

TEST_CASE("destroying a CQ waits for events that were got and not acknowledged", "[cq]") {
  Device device;
  Channel channel(device);
  Cq cq(device, 16, channel.channel);
  {
    Flusher flusher(device, cq);
    REQUIRE(ibv_req_notify_cq(cq.cq, 0) == 0);
    flusher.complete(1);
    ibv_cq* from = nullptr;
    void* context = nullptr;
    REQUIRE(ibv_get_cq_event(channel.channel, &from, &context) == 0);
  }
  std::atomic<bool> is_acknowledged{false};
  std::atomic<bool> was_acknowledged_when_destroyed{false};
  std::thread destroyer([&] {
    ibv_destroy_cq(cq.cq);
    was_acknowledged_when_destroyed = is_acknowledged.load();
  });
  is_acknowledged = true;
  ibv_ack_cq_events(cq.cq, 1);
  destroyer.join();
  CHECK(was_acknowledged_when_destroyed);
  cq.cq = nullptr;
}

TEST_CASE("an event that nobody took does not keep a CQ from being destroyed", "[cq]") {
  Device device;
  Channel channel(device);
  Cq cq(device, 16, channel.channel);
  {
    Flusher flusher(device, cq);
    REQUIRE(ibv_req_notify_cq(cq.cq, 0) == 0);
    flusher.complete(1);
  }
  CHECK(channel.is_readable());
  CHECK(ibv_destroy_cq(cq.cq) == 0);
  cq.cq = nullptr;
  CHECK_FALSE(channel.is_readable());
}

TEST_CASE("a CQ can be resized, but not below what waits in it", "[cq]") {
  Device device;
  Cq cq(device, 4);
  Flusher flusher(device, cq);
  for (std::uint64_t i = 0; i < 3; ++i) flusher.complete(i);
  CHECK(ibv_resize_cq(cq.cq, 2) == EINVAL);
  CHECK(ibv_resize_cq(cq.cq, 0) == EINVAL);
  CHECK(ibv_resize_cq(cq.cq, 100) == 0);
  CHECK(cq.cq->cqe >= 100);
  CHECK(cq.take().wr_id == 0);
}

TEST_CASE("destroying a queue pair takes its completions out of the CQ", "[cq]") {
  Device device;
  Cq cq(device, 16);
  {
    Flusher flusher(device, cq);
    flusher.complete(1);
  }
  CHECK(cq.is_empty());
}

TEST_CASE("an overrun CQ raises one asynchronous event, and destroying it waits for that", "[cq][async]") {
  Device device;
  Cq cq(device, 2);
  {
    Flusher flusher(device, cq);
    for (std::uint64_t i = 0; i < 8; ++i) flusher.complete(i);
  }
  ibv_async_event event;
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  CHECK(event.event_type == IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == cq.cq);
  ibv_wc wc;
  CHECK(ibv_poll_cq(cq.cq, 1, &wc) < 0);
  ibv_ack_async_event(&event);
}
