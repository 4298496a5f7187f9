// SPDX-License-Identifier: MIT
// Goal: a program that unmaps what it registered gets completions in error at both ends and goes on: docs/adr/0009.
// Method: two queue pairs of this process over real sockets; pages are taken away before they are needed.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

constexpr std::size_t kPages = 16;
constexpr std::size_t kBytes = kPages * 4096;

class MappedRegion {
 public:
  explicit MappedRegion(Device& device)
      : start_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(start_ != MAP_FAILED);
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    mr = ibv_reg_mr(device.pd, start_, kBytes, kAccess);
    REQUIRE(mr != nullptr);
  }
  ~MappedRegion() { CHECK(ibv_dereg_mr(mr) == 0); }
  MappedRegion(const MappedRegion&) = delete;
  MappedRegion& operator=(const MappedRegion&) = delete;
  void take_away() { munmap(start_, kBytes); }
  ibv_sge sge() const { return {address(), static_cast<std::uint32_t>(kBytes), mr->lkey}; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(start_); }

  ibv_mr* mr = nullptr;

 private:
  void* start_;
};

struct Pair {
  Pair()
      : send_cq(device),
        recv_cq(device),
        memory(device, kBytes),
        lost(device),
        a(device, rc_attr(send_cq.cq, recv_cq.cq)),
        b(device, rc_attr(send_cq.cq, recv_cq.cq)) {
    a.connect(b);
    b.connect(a);
  }
  int post_remote(ibv_wr_opcode opcode) {
    ibv_sge sge = memory.sge(0, kBytes);
    ibv_send_wr wr{};
    wr.wr_id = 5;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = lost.address();
    wr.wr.rdma.rkey = lost.mr->rkey;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(a.qp, &wr, &bad);
  }
  ibv_qp_state state_of(Qp& qp) {
    ibv_qp_attr now{};
    ibv_qp_init_attr init{};
    REQUIRE(ibv_query_qp(qp.qp, &now, IBV_QP_STATE, &init) == 0);
    return now.qp_state;
  }

  Device device;
  Cq send_cq;
  Cq recv_cq;
  Memory memory;
  MappedRegion lost;
  Qp a;
  Qp b;
};

}  // namespace

TEST_CASE("a message for a receive that was unmapped fails at both ends", "[lost]") {
  Pair pair;
  REQUIRE(pair.b.post_recv(7, {pair.lost.sge()}) == 0);
  pair.lost.take_away();
  REQUIRE(pair.a.post_send(8, {pair.memory.sge(0, kBytes)}) == 0);
  const ibv_wc received = pair.recv_cq.take();
  CHECK(received.wr_id == 7);
  CHECK(received.status == IBV_WC_LOC_PROT_ERR);
  const ibv_wc sent = pair.send_cq.take();
  CHECK(sent.wr_id == 8);
  CHECK(sent.status == IBV_WC_REM_OP_ERR);
  CHECK(pair.state_of(pair.a) == IBV_QPS_ERR);
  CHECK(pair.state_of(pair.b) == IBV_QPS_ERR);
}

TEST_CASE("a write to or a read from memory that was unmapped fails, and the target hears QP_FATAL", "[lost]") {
  const auto opcode = GENERATE(IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ);
  Pair pair;
  pair.lost.take_away();
  REQUIRE(pair.post_remote(opcode) == 0);
  CHECK(pair.send_cq.take().status == IBV_WC_REM_OP_ERR);
  ibv_async_event event{};
  do {
    REQUIRE(ibv_get_async_event(pair.device.context, &event) == 0);
    ibv_ack_async_event(&event);
  } while (event.event_type == IBV_EVENT_COMM_EST);
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == pair.b.qp);
}

TEST_CASE("a message from memory that was unmapped fails and reaches nobody", "[lost]") {
  Pair pair;
  REQUIRE(pair.b.post_recv(7, {pair.memory.sge(0, kBytes)}) == 0);
  pair.lost.take_away();
  REQUIRE(pair.a.post_send(8, {pair.lost.sge()}) == 0);
  const ibv_wc sent = pair.send_cq.take();
  CHECK(sent.wr_id == 8);
  CHECK(sent.status == IBV_WC_LOC_PROT_ERR);
  CHECK(pair.state_of(pair.a) == IBV_QPS_ERR);
  CHECK(pair.recv_cq.is_empty());
}
