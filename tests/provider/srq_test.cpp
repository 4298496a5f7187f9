// SPDX-License-Identifier: MIT
// Goal: shared receive queues keep the promises of ibv_create_srq(3) and ibv_modify_srq(3).
// Method: the public verbs API; messages between two queue pairs of this process.
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

struct Srq {
  Srq(Device& device, std::uint32_t depth) {
    ibv_srq_init_attr attr{nullptr, {depth, 2, 0}};
    srq = ibv_create_srq(device.pd, &attr);
    REQUIRE(srq != nullptr);
  }
  ~Srq() { CHECK(ibv_destroy_srq(srq) == 0); }
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;
  int post(std::uint64_t wr_id, ibv_sge sge) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq, &wr, &bad);
  }
  ibv_srq* srq = nullptr;
};

}  // namespace

TEST_CASE("an SRQ tells its size, takes a limit, and refuses what it cannot do", "[srq]") {
  Device device;
  Srq srq(device, 8);
  Memory memory(device, 64);
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(srq.post(i, memory.sge(0, 8)) == 0);
  ibv_srq_attr attr{};
  REQUIRE(ibv_query_srq(srq.srq, &attr) == 0);
  CHECK(attr.max_wr == 8);
  CHECK(attr.max_sge == 2);
  attr.srq_limit = 3;
  CHECK(ibv_modify_srq(srq.srq, &attr, IBV_SRQ_LIMIT) == 0);
  REQUIRE(ibv_query_srq(srq.srq, &attr) == 0);
  CHECK(attr.srq_limit == 3);
  attr.srq_limit = 9;
  CHECK(ibv_modify_srq(srq.srq, &attr, IBV_SRQ_LIMIT) == EINVAL);
  CHECK(ibv_modify_srq(srq.srq, &attr, 1 << 7) == EINVAL);
}

TEST_CASE("an SRQ cannot be resized, and a call that asks for it changes nothing", "[srq]") {
  Device device;
  const Srq srq(device, 8);
  ibv_srq_attr attr{16, 0, 3};
  CHECK(ibv_modify_srq(srq.srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == EINVAL);
  REQUIRE(ibv_query_srq(srq.srq, &attr) == 0);
  CHECK(attr.max_wr == 8);
  CHECK(attr.srq_limit == 0);
  ibv_device_attr about{};
  REQUIRE(ibv_query_device(device.context, &about) == 0);
  CHECK((about.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0);
}

TEST_CASE("an SRQ is as large as the device says at most", "[srq]") {
  Device device;
  ibv_device_attr about{};
  REQUIRE(ibv_query_device(device.context, &about) == 0);
  const auto depth = static_cast<std::uint32_t>(about.max_srq_wr);
  const auto sges = static_cast<std::uint32_t>(about.max_srq_sge);
  const auto created = [&](std::uint32_t max_wr, std::uint32_t max_sge) {
    ibv_srq_init_attr attr{nullptr, {max_wr, max_sge, 0}};
    errno = 0;
    ibv_srq* const srq = ibv_create_srq(device.pd, &attr);
    if (srq != nullptr) CHECK(ibv_destroy_srq(srq) == 0);
    return errno;
  };
  CHECK(created(depth, sges) == 0);
  CHECK(created(depth + 1, 1) == EINVAL);
  CHECK(created(8, sges + 1) == EINVAL);
  CHECK(created(0, 1) == EINVAL);
}

TEST_CASE("each SRQ has a number of its own, also a basic one that ibv_create_srq_ex made", "[srq]") {
  Device device;
  const Srq first(device, 8);
  ibv_srq_init_attr_ex attr{};
  attr.attr = {8, 1, 0};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = IBV_SRQT_BASIC;
  attr.pd = device.pd;
  ibv_srq* const second = ibv_create_srq_ex(device.context, &attr);
  REQUIRE(second != nullptr);
  std::uint32_t numbers[2] = {};
  REQUIRE(ibv_get_srq_num(first.srq, &numbers[0]) == 0);
  REQUIRE(ibv_get_srq_num(second, &numbers[1]) == 0);
  CHECK(numbers[0] != numbers[1]);
  CHECK((numbers[0] > 0 && numbers[0] < 1 << 24));
  CHECK(ibv_destroy_srq(second) == 0);
}

TEST_CASE("an SRQ is busy while a queue pair receives from it, which itself takes no receives", "[srq]") {
  Device device;
  Cq cq(device);
  Srq srq(device, 8);
  ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
  attr.srq = srq.srq;
  Qp qp(device, attr);
  CHECK(ibv_destroy_srq(srq.srq) == EBUSY);
  REQUIRE(qp.to_init() == 0);
  CHECK(qp.post_recv(1, {}) == ENOMEM);
}

TEST_CASE("messages of two queue pairs take lists of one SRQ; the completion names the queue pair", "[srq]") {
  Device device;
  Cq send_cq(device);
  Cq recv_cq(device);
  Srq srq(device, 8);
  Memory memory(device, 4096);
  ibv_qp_init_attr attr = rc_attr(recv_cq.cq, recv_cq.cq);
  attr.srq = srq.srq;
  Qp target_a(device, attr);
  Qp target_b(device, attr);
  Qp source_a(device, rc_attr(send_cq.cq, send_cq.cq));
  Qp source_b(device, rc_attr(send_cq.cq, send_cq.cq));
  source_a.connect(target_a);
  source_b.connect(target_b);
  target_a.connect(source_a);
  target_b.connect(source_b);
  REQUIRE(srq.post(10, memory.sge(1024, 100)) == 0);
  REQUIRE(srq.post(11, memory.sge(2048, 100)) == 0);

  REQUIRE(source_b.post_send(1, {memory.sge(0, 50)}) == 0);
  CHECK(send_cq.take().status == IBV_WC_SUCCESS);
  REQUIRE(source_a.post_send(2, {memory.sge(0, 60)}) == 0);
  CHECK(send_cq.take().status == IBV_WC_SUCCESS);

  const ibv_wc first = recv_cq.take();
  CHECK(first.wr_id == 10);
  CHECK(first.qp_num == target_b.qp->qp_num);
  CHECK(first.byte_len == 50);
  const ibv_wc second = recv_cq.take();
  CHECK(second.wr_id == 11);
  CHECK(second.qp_num == target_a.qp->qp_num);
  CHECK(second.byte_len == 60);
}

TEST_CASE("taking an SRQ below its limit raises one event", "[srq][async]") {
  Device device;
  Cq cq(device);
  Srq srq(device, 8);
  Memory memory(device, 4096);
  ibv_qp_init_attr with_srq = rc_attr(cq.cq, cq.cq);
  with_srq.srq = srq.srq;
  Qp target(device, with_srq);
  Qp source(device, rc_attr(cq.cq, cq.cq));
  source.connect(target);
  target.connect(source);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(srq.post(i, memory.sge(1024, 100)) == 0);
  ibv_srq_attr attr{0, 0, 2};
  REQUIRE(ibv_modify_srq(srq.srq, &attr, IBV_SRQ_LIMIT) == 0);

  REQUIRE(source.post_send(1, {memory.sge(0, 8)}) == 0);
  cq.take();
  cq.take();

  ibv_async_event event;
  do {  // the first message also says that the communication is established
    REQUIRE(ibv_get_async_event(device.context, &event) == 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  CHECK(event.element.srq == srq.srq);
}

TEST_CASE("an unreliable connection may take lists of the SRQ that a reliable one uses", "[srq]") {
  Device device;
  Cq send_cq(device);
  Cq recv_cq(device);
  Srq srq(device, 8);
  Memory memory(device, 4096);
  ibv_qp_init_attr with_srq = rc_attr(recv_cq.cq, recv_cq.cq);
  with_srq.srq = srq.srq;
  ibv_qp_init_attr without = rc_attr(send_cq.cq, send_cq.cq);
  Qp reliable_source(device, without);
  Qp reliable_target(device, with_srq);
  with_srq.qp_type = without.qp_type = IBV_QPT_UC;
  Qp source(device, without);
  Qp target(device, with_srq);
  reliable_source.connect(reliable_target);
  reliable_target.connect(reliable_source);
  source.connect_unreliable(target);
  target.connect_unreliable(source);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(srq.post(i, memory.sge(1024, 100)) == 0);
  REQUIRE(source.post_send(1, {memory.sge(0, 50)}) == 0);
  CHECK(recv_cq.take().qp_num == target.qp->qp_num);
  REQUIRE(reliable_source.post_send(2, {memory.sge(0, 60)}) == 0);
  CHECK(recv_cq.take().qp_num == reliable_target.qp->qp_num);
}

TEST_CASE("a queue pair that is reset takes its completions with it, and the SRQ gets their room back", "[srq][qp]") {
  Device device;
  Cq send_cq(device);
  Cq recv_cq(device);
  Srq srq(device, 2);
  Memory memory(device, 4096);
  ibv_qp_init_attr with_srq = rc_attr(recv_cq.cq, recv_cq.cq);
  with_srq.srq = srq.srq;
  Qp target(device, with_srq);
  Qp source(device, rc_attr(send_cq.cq, send_cq.cq));
  source.connect(target);
  target.connect(source);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(srq.post(i, memory.sge(1024, 100)) == 0);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(source.post_send(1, {memory.sge(0, 8)}) == 0);
    CHECK(send_cq.take().status == IBV_WC_SUCCESS);
  }
  CHECK(srq.post(3, memory.sge(1024, 100)) == ENOMEM);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RESET;
  REQUIRE(ibv_modify_qp(target.qp, &attr, IBV_QP_STATE) == 0);
  CHECK(recv_cq.is_empty());
  CHECK(srq.post(3, memory.sge(1024, 100)) == 0);
  CHECK(srq.post(4, memory.sge(1024, 100)) == 0);
}

TEST_CASE("lists of an SRQ are looked up in the SRQ's protection domain, not in the queue pair's", "[srq][mr]") {
  Device device;
  Cq send_cq(device);
  Cq recv_cq(device);
  Srq srq(device, 2);
  Memory memory(device, 4096);
  ibv_pd* const other_pd = ibv_alloc_pd(device.context);
  REQUIRE(other_pd != nullptr);
  {
    ibv_qp_init_attr with_srq = rc_attr(recv_cq.cq, recv_cq.cq);
    with_srq.srq = srq.srq;
    Qp target(device, ibv_create_qp(other_pd, &with_srq));
    Qp source(device, rc_attr(send_cq.cq, send_cq.cq));
    source.connect(target);
    target.connect(source);
    REQUIRE(srq.post(1, memory.sge(1024, 100)) == 0);
    REQUIRE(source.post_send(1, {memory.sge(0, 8)}) == 0);
    CHECK(recv_cq.take().status == IBV_WC_SUCCESS);
  }
  CHECK(ibv_dealloc_pd(other_pd) == 0);
}

TEST_CASE("a queue pair that goes to ERR says that it took its last list of the SRQ", "[srq][async]") {
  Device device;
  Cq cq(device);
  Srq srq(device, 2);
  ibv_qp_init_attr with_srq = rc_attr(cq.cq, cq.cq);
  with_srq.srq = srq.srq;
  Qp target(device, with_srq);
  REQUIRE(target.to_init() == 0);
  REQUIRE(target.to_error() == 0);
  ibv_async_event event;
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  ibv_ack_async_event(&event);
  CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
  CHECK(event.element.qp == target.qp);
}

TEST_CASE("destroying an SRQ waits until its event is acknowledged", "[srq][async]") {
  Device device;
  Cq cq(device);
  Memory memory(device, 64);
  ibv_srq_init_attr init{nullptr, {8, 1, 0}};
  ibv_srq* const srq = ibv_create_srq(device.pd, &init);
  REQUIRE(srq != nullptr);
  {
    ibv_qp_init_attr with_srq = rc_attr(cq.cq, cq.cq);
    with_srq.srq = srq;
    Qp target(device, with_srq);
    Qp source(device, rc_attr(cq.cq, cq.cq));
    source.connect(target);
    target.connect(source);
    ibv_sge sge = memory.sge(0, 8);
    ibv_recv_wr wr{1, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    REQUIRE(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    ibv_srq_attr limit{0, 0, 1};
    REQUIRE(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
    REQUIRE(source.post_send(1, {memory.sge(8, 8)}) == 0);
    cq.take();
    cq.take();
  }
  ibv_async_event event;
  REQUIRE(ibv_get_async_event(device.context, &event) == 0);
  REQUIRE(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  std::atomic<bool> is_acknowledged = false;
  std::thread destroyer([&] {
    CHECK(ibv_destroy_srq(srq) == 0);
    CHECK(is_acknowledged);
  });
  is_acknowledged = true;
  ibv_ack_async_event(&event);
  destroyer.join();
}
