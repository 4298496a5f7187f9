// SPDX-License-Identifier: MIT
// Goal: unreliable datagrams arrive behind their 40 bytes of GRH, and can be answered from what the completion says:
// ibv_create_ah(3), ibv_create_ah_from_wc(3); and unreliable connections carry messages as reliable ones do.
// Method: two queue pairs of this process, over each address of the device.
#include <arpa/inet.h>
#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/provider/datagrams.h"
#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

TEST_CASE("a datagram goes to whom its address handle names, and back to whom the completion names", "[datagram]") {
  const std::uint8_t gid_index = GENERATE(0, 1, 2, 3);
  Device device;
  Cq a_cq(device);
  Cq b_cq(device);
  Memory memory(device, 8192);
  memory.fill(1);
  Qp a(device, datagram_attr(a_cq));
  Qp b(device, datagram_attr(b_cq));
  start_datagrams(a);
  start_datagrams(b);
  ibv_ah* const to_b = make_ah(device, gid_index);
  REQUIRE(b.post_recv(1, {memory.sge(4096, 200)}) == 0);
  REQUIRE(a.post_recv(2, {memory.sge(5000, 200)}) == 0);

  REQUIRE(post_datagram(a, to_b, b.qp->qp_num, memory.sge(0, 100)) == 0);
  CHECK(ibv_destroy_ah(to_b) == 0);  // the work request has its own copy
  CHECK(a_cq.take().status == IBV_WC_SUCCESS);
  ibv_wc wc = b_cq.take();
  CHECK(wc.byte_len == kGrhBytes + 100);
  CHECK(wc.src_qp == a.qp->qp_num);
  CHECK((wc.wc_flags & IBV_WC_GRH) != 0);
  CHECK(std::equal(memory.bytes.begin(), memory.bytes.begin() + 100, memory.bytes.begin() + 4096 + kGrhBytes));

  auto* const grh = reinterpret_cast<ibv_grh*>(&memory.bytes[4096]);
  ibv_ah* const back = ibv_create_ah_from_wc(device.pd, &wc, grh, 1);
  REQUIRE(back != nullptr);
  REQUIRE(post_datagram(b, back, wc.src_qp, memory.sge(1000, 50)) == 0);
  CHECK(b_cq.take().status == IBV_WC_SUCCESS);
  CHECK(a_cq.take().byte_len == kGrhBytes + 50);
  CHECK(ibv_destroy_ah(back) == 0);
}

TEST_CASE("traffic class and hop limit arrive in the GRH, and the way back has them, too", "[datagram]") {
  Device device;
  Cq cq(device);
  Memory memory(device, 8192);
  Qp a(device, datagram_attr(cq));
  Qp b(device, datagram_attr(cq));
  start_datagrams(a);
  start_datagrams(b);
  ibv_ah_attr attr{};
  const std::uint8_t gid_index = GENERATE(0, 1, 2, 3);
  REQUIRE(ibv_query_gid(device.context, 1, gid_index, &attr.grh.dgid) == 0);
  attr.grh.sgid_index = gid_index;
  attr.grh.hop_limit = 7;
  attr.grh.traffic_class = 0x60;
  attr.is_global = 1;
  attr.port_num = 1;
  ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
  REQUIRE(b.post_recv(1, {memory.sge(4096, 200)}) == 0);
  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, 100)) == 0);
  ibv_wc wc = cq.take();
  if (wc.opcode != IBV_WC_RECV) wc = cq.take();
  if (wc.opcode != IBV_WC_RECV) wc = cq.take();
  ibv_ah_attr back{};
  REQUIRE(ibv_init_ah_from_wc(device.context, 1, &wc, reinterpret_cast<ibv_grh*>(&memory.bytes[4096]), &back) == 0);
  CHECK(back.is_global == 1);
  CHECK(back.port_num == 1);
  CHECK(back.grh.hop_limit == 7);
  CHECK(back.grh.traffic_class == 0x60);
  CHECK(std::memcmp(&back.grh.dgid, &attr.grh.dgid, sizeof attr.grh.dgid) == 0);
  ibv_gid sgid{};
  REQUIRE(ibv_query_gid(device.context, 1, back.grh.sgid_index, &sgid) == 0);
  CHECK(std::memcmp(&sgid, &attr.grh.dgid, sizeof sgid) == 0);  // it was sent to itself
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("what is no GRH makes no address handle", "[datagram]") {
  Device device;
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_grh grh{};
  ibv_ah_attr attr{};
  errno = 0;
  CHECK(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == -1);
  CHECK(errno == EPROTONOSUPPORT);
  grh.version_tclass_flow = htonl(0x60000000);
  grh.next_hdr = 6;  // TCP
  CHECK(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == -1);
  CHECK(errno == EPROTONOSUPPORT);
  grh.next_hdr = 17;
  grh.dgid.raw[0] = 0x20;  // no address of this machine
  CHECK(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == -1);
  CHECK(errno == EINVAL);
  wc.wc_flags = 0;
  CHECK(ibv_init_ah_from_wc(device.context, 1, &wc, &grh, &attr) == 0);
  CHECK(attr.is_global == 0);
  CHECK(ibv_create_ah(device.pd, &attr) == nullptr);  // RoCE has no other addresses
  CHECK(errno == EINVAL);
}

TEST_CASE("the high bit of a Q_Key stands for the queue pair's own", "[datagram]") {
  Device device;
  Cq a_cq(device), b_cq(device);
  Memory memory(device, 8192);
  Qp a(device, datagram_attr(a_cq));
  Qp b(device, datagram_attr(b_cq));
  start_datagrams(a);
  start_datagrams(b);
  ibv_ah* const ah = make_ah(device, 0);
  REQUIRE(b.post_recv(1, {memory.sge(4096, 200)}) == 0);
  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, 10), kQkey + 1) == 0);  // is not let in
  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, 20), 0x80000000) == 0);
  CHECK(b_cq.take().byte_len == kGrhBytes + 20);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("a datagram as long as the MTU arrives; a longer one fails its sender, which goes on after SQE",
          "[datagram]") {
  Device device;
  Cq a_cq(device), b_cq(device);
  Memory memory(device, 16384);
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(device.context, 1, &port) == 0);
  const std::size_t mtu = std::size_t{128} << port.active_mtu;
  Qp a(device, datagram_attr(a_cq));
  Qp b(device, datagram_attr(b_cq));
  start_datagrams(a);
  start_datagrams(b);
  ibv_ah* const ah = make_ah(device, 0);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(b.post_recv(i, {memory.sge(8192, kGrhBytes + mtu)}) == 0);
  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, mtu)) == 0);
  CHECK(a_cq.take().status == IBV_WC_SUCCESS);
  CHECK(b_cq.take().byte_len == kGrhBytes + mtu);

  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, mtu + 1)) == 0);
  CHECK(a_cq.take().status == IBV_WC_LOC_LEN_ERR);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_SQE);
  attr.qp_state = IBV_QPS_RTS;
  attr.cur_qp_state = IBV_QPS_SQE;
  REQUIRE(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0);
  REQUIRE(post_datagram(a, ah, b.qp->qp_num, memory.sge(0, 5)) == 0);
  CHECK(a_cq.take().status == IBV_WC_SUCCESS);
  CHECK(b_cq.take().byte_len == kGrhBytes + 5);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("a datagram for memory that was unmapped fails the receive, one from there fails the send", "[datagram]") {
  constexpr std::size_t kPage = 4096;
  Device device;
  Cq cq(device);
  Qp qp(device, datagram_attr(cq));
  start_datagrams(qp);
  ibv_ah_attr attr{};
  REQUIRE(ibv_query_gid(device.context, 1, 0, &attr.grh.dgid) == 0);
  attr.is_global = 1;
  attr.port_num = 1;
  ibv_ah* const to_itself = ibv_create_ah(device.pd, &attr);
  Memory memory(device, kPage);
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int access = IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* const mr = ibv_reg_mr(device.pd, page, kPage, access);
  REQUIRE(mr != nullptr);
  munmap(page, kPage);
  const ibv_sge gone{reinterpret_cast<std::uintptr_t>(page), kPage, mr->lkey};

  REQUIRE(qp.post_recv(1, {gone}) == 0);
  REQUIRE(post_datagram(qp, to_itself, qp.qp->qp_num, memory.sge(0, 8)) == 0);
  CHECK(cq.take().status == IBV_WC_SUCCESS);
  const ibv_wc received = cq.take();
  CHECK(received.wr_id == 1);
  CHECK(received.status == IBV_WC_LOC_PROT_ERR);

  Qp sender(device, datagram_attr(cq));
  start_datagrams(sender);
  REQUIRE(post_datagram(sender, to_itself, qp.qp->qp_num, {gone.addr, 8, gone.lkey}) == 0);
  CHECK(cq.take().status == IBV_WC_LOC_PROT_ERR);
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_destroy_ah(to_itself) == 0);
}

TEST_CASE("an unreliable connection carries a message of several packets", "[uc]") {
  Device device;
  Cq cq(device);
  Memory memory(device, 8192);
  memory.fill(5);
  ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
  attr.qp_type = IBV_QPT_UC;
  Qp a(device, attr);
  Qp b(device, attr);
  a.connect_unreliable(b);
  b.connect_unreliable(a);
  REQUIRE(b.post_recv(1, {memory.sge(4096, 3000)}) == 0);
  REQUIRE(a.post_send(2, {memory.sge(0, 2500)}) == 0);
  CHECK(cq.take().status == IBV_WC_SUCCESS);
  CHECK(cq.take().status == IBV_WC_SUCCESS);
  CHECK(std::equal(memory.bytes.begin(), memory.bytes.begin() + 2500, memory.bytes.begin() + 4096));
}
