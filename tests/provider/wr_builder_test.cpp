// SPDX-License-Identifier: MIT
// Goal: the ibv_wr_* interface posts what was built, all of it or nothing: ibv_wr_post(3).
// Method: two queue pairs of this process, one of them made with send_ops_flags.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

struct Pair {
  Pair() : send_cq(device), recv_cq(device), memory(device, 8192), b(device, rc_attr(recv_cq.cq, recv_cq.cq)) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = send_cq.cq;
    attr.cap = {8, 8, 2, 2, 64};
    attr.qp_type = IBV_QPT_RC;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = device.pd;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE;
    a = std::make_unique<Qp>(device, ibv_create_qp_ex(device.context, &attr));
    ex = ibv_qp_to_qp_ex(a->qp);
    REQUIRE(ex != nullptr);
    a->connect(b);
    b.connect(*a);
    memory.fill(9);
  }
  Device device;
  Cq send_cq;
  Cq recv_cq;
  Memory memory;
  Qp b;
  std::unique_ptr<Qp> a;
  ibv_qp_ex* ex = nullptr;
};

}  // namespace

TEST_CASE("built work requests are posted together, lists and inline data included", "[wr_builder]") {
  Pair pair;
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(pair.b.post_recv(i, {pair.memory.sge(4096 + i * 100, 100)}) == 0);
  const ibv_sge one = pair.memory.sge(0, 10);
  const std::vector<ibv_sge> two{pair.memory.sge(10, 20), pair.memory.sge(100, 30)};
  std::string text = "inline";

  ibv_wr_start(pair.ex);
  pair.ex->wr_id = 1;
  pair.ex->wr_flags = 0;
  ibv_wr_send(pair.ex);
  ibv_wr_set_sge(pair.ex, one.lkey, one.addr, one.length);
  pair.ex->wr_id = 2;
  ibv_wr_send_imm(pair.ex, htobe32(0x1234));
  ibv_wr_set_sge_list(pair.ex, two.size(), two.data());
  pair.ex->wr_id = 3;
  pair.ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ibv_wr_send(pair.ex);
  ibv_wr_set_inline_data(pair.ex, text.data(), text.size());
  text = "gone";
  REQUIRE(ibv_wr_complete(pair.ex) == 0);

  CHECK(pair.send_cq.take().wr_id == 3);
  CHECK(pair.recv_cq.take().byte_len == 10);
  const ibv_wc second = pair.recv_cq.take();
  CHECK(second.byte_len == 50);
  CHECK(second.wc_flags == IBV_WC_WITH_IMM);
  CHECK(second.imm_data == htobe32(0x1234));
  CHECK(pair.recv_cq.take().byte_len == 6);
  CHECK(std::string(pair.memory.bytes.begin() + 4296, pair.memory.bytes.begin() + 4302) == "inline");
}

TEST_CASE("one bad request among those built, and none is posted", "[wr_builder]") {
  Pair pair;
  const ibv_sge sge = pair.memory.sge(0, 10);
  int expected = EINVAL;
  ibv_wr_start(pair.ex);
  pair.ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(pair.ex);
  ibv_wr_set_sge(pair.ex, sge.lkey, sge.addr, sge.length);
  SECTION("a list that is too long") {
    const std::vector<ibv_sge> list(3, sge);
    ibv_wr_send(pair.ex);
    ibv_wr_set_sge_list(pair.ex, list.size(), list.data());
    expected = ENOMEM;
  }
  SECTION("an operation that is not supported") {
    ibv_wr_send_tso(pair.ex, nullptr, 0, 0);
    expected = EOPNOTSUPP;
  }
  SECTION("more than there is room for") {
    for (int i = 0; i < 8; ++i) ibv_wr_send(pair.ex);
    expected = ENOMEM;
  }
  CHECK(ibv_wr_complete(pair.ex) == expected);
  CHECK(pair.send_cq.is_empty());

  ibv_wr_start(pair.ex);
  ibv_wr_send(pair.ex);
  ibv_wr_abort(pair.ex);
  CHECK(pair.send_cq.is_empty());
}

TEST_CASE("a queue pair made without send_ops_flags has no such interface", "[wr_builder]") {
  Pair pair;
  CHECK(ibv_qp_to_qp_ex(pair.b.qp) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}

TEST_CASE("an operation that send_ops_flags does not have is refused, and nothing is posted", "[wr_builder]") {
  Pair pair;
  pair.ex->wr_id = 1;
  pair.ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_start(pair.ex);
  ibv_wr_send(pair.ex);
  ibv_wr_set_sge(pair.ex, pair.memory.mr->lkey, reinterpret_cast<std::uintptr_t>(pair.memory.bytes.data()), 8);
  ibv_wr_rdma_read(pair.ex, pair.memory.mr->rkey, reinterpret_cast<std::uintptr_t>(pair.memory.bytes.data()));
  ibv_wr_set_sge(pair.ex, pair.memory.mr->lkey, reinterpret_cast<std::uintptr_t>(pair.memory.bytes.data()), 8);
  CHECK(ibv_wr_complete(pair.ex) == EINVAL);
  CHECK(pair.send_cq.is_empty());
}
