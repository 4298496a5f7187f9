// SPDX-License-Identifier: MIT
// Goal: queue pairs are made, changed, asked and destroyed as ibv_create_qp(3), ibv_modify_qp(3) and ibv_query_qp(3)
// say. What their packets do has its own tests (tests/wire).
// Method: the public verbs API.
#include <catch2/catch.hpp>
#include <cerrno>
#include <set>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

TEST_CASE("a queue pair beyond the device's limits, or of another type, is refused", "[qp]") {
  Device device;
  const Cq cq(device);
  ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
  int expected = EINVAL;
  SECTION("send queue") {
    attr.cap.max_send_wr = 1 << 20;
  }
  SECTION("receive queue") {
    attr.cap.max_recv_wr = 1 << 20;
  }
  SECTION("send list") {
    attr.cap.max_send_sge = 33;
  }
  SECTION("receive list") {
    attr.cap.max_recv_sge = 33;
  }
  SECTION("inline data") {
    attr.cap.max_inline_data = 4096;
  }
  SECTION("no CQ") {
    attr.recv_cq = nullptr;
  }
  SECTION("no such type") {
    attr.qp_type = static_cast<ibv_qp_type>(77);
  }
  SECTION("a type that is known and not ours") {
    attr.qp_type = IBV_QPT_RAW_PACKET;
    expected = EOPNOTSUPP;
  }
  errno = 0;
  CHECK(ibv_create_qp(device.pd, &attr) == nullptr);
  CHECK(errno == expected);
}

TEST_CASE("objects of two contexts do not make a queue pair", "[qp]") {
  Device device;
  Device other;
  const Cq cq(device);
  const Cq other_cq(other);
  ibv_qp_init_attr attr = rc_attr(cq.cq, other_cq.cq);
  CHECK(ibv_create_qp(device.pd, &attr) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("300 queue pairs have 300 numbers, on more than one port, and their ports are closed with them", "[qp]") {
  Device device;
  const Cq cq(device);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<Qp>> qps;
    std::set<std::uint32_t> numbers;
    std::set<std::uint32_t> ports;
    for (int i = 0; i < 300; ++i) {
      qps.push_back(std::make_unique<Qp>(device, rc_attr(cq.cq, cq.cq)));
      numbers.insert(qps.back()->qp->qp_num);
      ports.insert(qps.back()->qp->qp_num >> 8);
    }
    CHECK(numbers.size() == 300);
    CHECK(ports.size() == 2);
  }
}

TEST_CASE("the states in order, and what query gives back on the way", "[qp]") {
  Device device;
  const Cq cq(device);
  Qp qp(device, rc_attr(cq.cq, cq.cq));
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(device.context, 1, 0, &gid) == 0);
  CHECK(qp.qp->state == IBV_QPS_RESET);
  CHECK(qp.to_rts() == EINVAL);
  ibv_qp_attr no_state{};
  no_state.qp_state = static_cast<ibv_qp_state>(99);
  CHECK(ibv_modify_qp(qp.qp, &no_state, IBV_QP_STATE) == EINVAL);
  REQUIRE(qp.to_init() == 0);
  CHECK(qp.qp->state == IBV_QPS_INIT);
  REQUIRE(qp.to_rtr(0x123456, gid) == 0);
  REQUIRE(qp.to_rts() == 0);
  CHECK(qp.qp->state == IBV_QPS_RTS);

  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(qp.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  CHECK(attr.cur_qp_state == IBV_QPS_RTS);
  CHECK(attr.path_mtu == IBV_MTU_1024);
  CHECK(attr.dest_qp_num == 0x123456);
  CHECK(attr.rq_psn == 0xfffff0);
  CHECK(attr.sq_psn == 0xfffff0);
  CHECK(attr.timeout == 14);
  CHECK(attr.retry_cnt == 7);
  CHECK(attr.rnr_retry == 7);
  CHECK(attr.min_rnr_timer == 1);
  CHECK(attr.max_rd_atomic == 4);
  CHECK(attr.max_dest_rd_atomic == 4);
  CHECK(attr.port_num == 1);
  CHECK(attr.qp_access_flags == (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
  CHECK(attr.ah_attr.is_global == 1);
  CHECK(std::memcmp(attr.ah_attr.grh.dgid.raw, gid.raw, sizeof gid.raw) == 0);
  CHECK(attr.cap.max_send_wr >= 64);
  CHECK(attr.cap.max_inline_data >= 128);
  CHECK(init.qp_type == IBV_QPT_RC);
  CHECK(init.send_cq == cq.cq);

  REQUIRE(qp.to_error() == 0);
  REQUIRE(ibv_query_qp(qp.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_ERR);
}

TEST_CASE("an address that the device does not have is refused at RTR, with the state unchanged", "[qp]") {
  Device device;
  const Cq cq(device);
  Qp qp(device, rc_attr(cq.cq, cq.cq));
  REQUIRE(qp.to_init() == 0);
  ibv_gid gid{};
  REQUIRE(ibv_query_gid(device.context, 1, 0, &gid) == 0);
  CHECK(qp.to_rtr(1, gid, 63) == EINVAL);
  CHECK(qp.qp->state == IBV_QPS_INIT);
  CHECK(qp.to_rtr(1, gid) == 0);
}

TEST_CASE("ibv_create_qp_ex needs a PD and takes nothing it does not know", "[qp]") {
  Device device;
  const Cq cq(device);
  ibv_qp_init_attr_ex attr{};
  attr.send_cq = attr.recv_cq = cq.cq;
  attr.cap = {16, 16, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  CHECK(ibv_create_qp_ex(device.context, &attr) == nullptr);
  CHECK(errno == EINVAL);
  attr.pd = device.pd;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
  CHECK(ibv_create_qp_ex(device.context, &attr) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  ibv_qp* const qp = ibv_create_qp_ex(device.context, &attr);
  REQUIRE(qp != nullptr);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE("an address handle needs an address of this device", "[ah]") {
  Device device;
  ibv_ah_attr attr{};
  attr.port_num = 1;
  CHECK(ibv_create_ah(device.pd, &attr) == nullptr);  // no GRH
  CHECK(errno == EINVAL);
  attr.is_global = 1;
  REQUIRE(ibv_query_gid(device.context, 1, 0, &attr.grh.dgid) == 0);
  ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
  REQUIRE(ah != nullptr);
  CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("a queue pair takes some inline data also where none was asked for, and says so", "[qp]") {
  Device device;
  const Cq cq(device);
  ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
  attr.cap.max_inline_data = 0;
  ibv_qp* qp = ibv_create_qp(device.pd, &attr);
  REQUIRE(qp != nullptr);
  CHECK(attr.cap.max_inline_data == 64);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE(
    "an extended creation takes what is 0, refuses what we lack with EOPNOTSUPP and what nobody knows with EINVAL",
    "[qp]") {
  Device device;
  Cq cq(device);
  const auto made = [&](std::uint32_t more_comp_mask, std::uint32_t create_flags, std::uint16_t max_tso_header) {
    const ibv_qp_init_attr plain = rc_attr(cq.cq, cq.cq);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = plain.send_cq;
    attr.recv_cq = plain.recv_cq;
    attr.cap = plain.cap;
    attr.qp_type = plain.qp_type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | more_comp_mask;
    attr.pd = device.pd;
    attr.create_flags = create_flags;
    attr.max_tso_header = max_tso_header;
    errno = 0;
    ibv_qp* const qp = ibv_create_qp_ex(device.context, &attr);
    if (qp != nullptr) CHECK(ibv_destroy_qp(qp) == 0);
    return qp != nullptr ? 0 : errno;
  };
  CHECK(made(IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, 0) == 0);
  CHECK(made(IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 0) == 0);
  CHECK(made(IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 64) == EOPNOTSUPP);
  CHECK(made(IBV_QP_INIT_ATTR_RX_HASH, 0, 0) == EOPNOTSUPP);
  CHECK(made(IBV_QP_INIT_ATTR_IND_TABLE, 0, 0) == EOPNOTSUPP);
  CHECK(made(IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SCATTER_FCS, 0) == EOPNOTSUPP);
  CHECK(made(IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SOURCE_QPN, 0) == EOPNOTSUPP);
  CHECK(made(IBV_QP_INIT_ATTR_CREATE_FLAGS, 1u << 30, 0) == EINVAL);
  CHECK(made(1u << 20, 0, 0) == EINVAL);
}

TEST_CASE("attributes at the edge of their range are taken, those beyond it are refused and change nothing", "[qp]") {
  Device device;
  Cq cq(device);
  Qp qp(device, rc_attr(cq.cq, cq.cq));
  Qp peer(device, rc_attr(cq.cq, cq.cq));
  qp.connect(peer);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE) == 0);
  struct Range {
    int bit;
    std::uint8_t ibv_qp_attr::*member;
    std::uint8_t largest;
  };
  const Range ranges[] = {{IBV_QP_TIMEOUT, &ibv_qp_attr::timeout, 31},
                          {IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt, 7},
                          {IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry, 7},
                          {IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer, 31},
                          {IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic, 16},
                          {IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic, 16}};
  for (const Range& range : ranges) {
    attr.*range.member = range.largest;
    CHECK(ibv_modify_qp(qp.qp, &attr, range.bit) == 0);
    attr.*range.member = static_cast<std::uint8_t>(range.largest + 1);
    CHECK(ibv_modify_qp(qp.qp, &attr, range.bit) == EINVAL);
    ibv_qp_attr now{};
    ibv_qp_init_attr init{};
    REQUIRE(ibv_query_qp(qp.qp, &now, range.bit, &init) == 0);
    CHECK(now.*range.member == range.largest);
    attr.*range.member = range.largest;
  }
  ibv_device_attr device_attr{};
  REQUIRE(ibv_query_device(device.context, &device_attr) == 0);
  CHECK(device_attr.max_qp_rd_atom == 16);
  CHECK(device_attr.max_qp_init_rd_atom == 16);
}

TEST_CASE("cur_qp_state must be the state that the queue pair is in, and rates are not limited", "[qp]") {
  Device device;
  Cq cq(device);
  Qp qp(device, rc_attr(cq.cq, cq.cq));
  Qp peer(device, rc_attr(cq.cq, cq.cq));
  qp.connect(peer);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.cur_qp_state = IBV_QPS_RTR;
  CHECK(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
  attr.cur_qp_state = static_cast<ibv_qp_state>(77);
  CHECK(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
  attr.cur_qp_state = IBV_QPS_RTS;
  CHECK(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0);
  attr.rate_limit = 1000;
  CHECK(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT) == EINVAL);
  CHECK(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | 1 << 30) == EINVAL);
}

TEST_CASE("what nobody answers is flushed when its queue pair is told to stop", "[qp]") {
  Device device;
  Cq cq(device);
  Memory memory(device, 100);
  Qp a(device, rc_attr(cq.cq, cq.cq));
  Qp b(device, rc_attr(cq.cq, cq.cq));  // in RESET
  a.connect(b);
  REQUIRE(a.post_send(2, {memory.sge(0, 100)}) == 0);
  REQUIRE(a.to_error() == 0);
  const ibv_wc wc = cq.take();
  CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  CHECK(wc.wr_id == 2);
}
