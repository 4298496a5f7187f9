// SPDX-License-Identifier: MIT
// Goal: XRC keeps the promises of ibv_open_xrcd(3), ibv_create_srq_ex(3), ibv_create_qp_ex(3) and ibv_open_qp(3):
// domains by inode, SRQs that are named by number, queue pairs that go one way, and the errno of each mistake. Method:
// the public verbs API; messages between queue pairs of this process.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <string>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

// A file of its own, whose inode names a domain.
struct File {
  File() : file(std::tmpfile()), fd(fileno(file)) { REQUIRE(file != nullptr); }
  ~File() { std::fclose(file); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::FILE* file;
  int fd;
};

ibv_xrcd* open_xrcd(Device& device, int fd, int oflags) {
  ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, fd, oflags};
  return ibv_open_xrcd(device.context, &attr);
}

struct Domain {
  explicit Domain(Device& the_device, int fd = -1) : device(the_device), xrcd(open_xrcd(the_device, fd, O_CREAT)) {
    REQUIRE(xrcd != nullptr);
  }
  ~Domain() {
    if (xrcd != nullptr) CHECK(ibv_close_xrcd(xrcd) == 0);
  }
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  Device& device;
  ibv_xrcd* xrcd;
};

ibv_srq_init_attr_ex srq_attr(Domain& domain, Cq& cq) {
  ibv_srq_init_attr_ex attr{};
  attr.attr = {16, 2, 0};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.pd = domain.device.pd;
  attr.xrcd = domain.xrcd;
  attr.cq = cq.cq;
  return attr;
}

struct XrcSrq {
  XrcSrq(Domain& domain, Cq& cq) {
    ibv_srq_init_attr_ex attr = srq_attr(domain, cq);
    srq = ibv_create_srq_ex(domain.device.context, &attr);
    REQUIRE(srq != nullptr);
    REQUIRE(ibv_get_srq_num(srq, &number) == 0);
  }
  ~XrcSrq() {
    if (srq != nullptr) CHECK(ibv_destroy_srq(srq) == 0);
  }
  XrcSrq(const XrcSrq&) = delete;
  XrcSrq& operator=(const XrcSrq&) = delete;
  int post(std::uint64_t wr_id, ibv_sge sge) {
    ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_srq_recv(srq, &wr, &bad);
  }
  ibv_srq* srq = nullptr;
  std::uint32_t number = 0;
};

ibv_qp* create_target(Domain& domain) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_RECV;
  attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
  attr.xrcd = domain.xrcd;
  return ibv_create_qp_ex(domain.device.context, &attr);
}

// As programs make it: no recv_cq, and a mask that ends in ibv_create_qp.
ibv_qp* create_initiator(Device& device, ibv_cq* send_cq, std::uint64_t send_ops = 0) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.send_cq = send_cq;
  attr.cap.max_send_wr = 16;
  attr.cap.max_send_sge = 2;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = device.pd;
  if (send_ops != 0) attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.send_ops_flags = send_ops;
  return ibv_create_qp_ex(device.context, &attr);
}

int post_to(ibv_qp* qp, std::uint32_t srqn, ibv_wr_opcode opcode, ibv_sge sge, const Memory* remote = nullptr) {
  ibv_send_wr wr{};
  wr.wr_id = 7;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.qp_type.xrc.remote_srqn = srqn;
  if (remote != nullptr) {
    wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(remote->bytes.data());
    wr.wr.rdma.rkey = remote->mr->rkey;
  }
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp, &wr, &bad);
}

// An initiator that is connected to a target, and an SRQ of the target's domain.
struct XrcPair {
  explicit XrcPair(std::uint64_t send_ops = 0)
      : initiator(device, create_initiator(device, send_cq.cq, send_ops)), target(device, create_target(domain)) {
    initiator.connect(target);
    target.connect(initiator);
  }
  Device device;
  Domain domain{device};
  Cq send_cq{device};
  Cq recv_cq{device};
  Memory memory{device, 8192};
  XrcSrq srq{domain, recv_cq};
  Qp initiator;
  Qp target;
};

}  // namespace

TEST_CASE("a file names one domain in a process, to open, to create or to refuse", "[xrc]") {
  Device device;
  File file;
  CHECK(open_xrcd(device, file.fd, 0) == nullptr);
  CHECK(errno == EAGAIN);
  {
    const Domain first(device, file.fd);
    CHECK(open_xrcd(device, file.fd, O_CREAT | O_EXCL) == nullptr);
    CHECK(errno == EINVAL);
    ibv_xrcd* const second = open_xrcd(device, file.fd, 0);
    REQUIRE(second != nullptr);
    CHECK(ibv_close_xrcd(second) == 0);
  }
  CHECK(open_xrcd(device, file.fd, 0) == nullptr);
  CHECK(errno == EAGAIN);
  CHECK(open_xrcd(device, 1023, O_CREAT) == nullptr);
  CHECK(errno == EBADF);
}

TEST_CASE("a mask that lacks the descriptor or has unknown bits opens no domain", "[xrc]") {
  Device device;
  ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT};
  CHECK(ibv_open_xrcd(device.context, &attr) == nullptr);
  CHECK(errno == EINVAL);
  attr.comp_mask = 1 << 2 | IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  CHECK(ibv_open_xrcd(device.context, &attr) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}

TEST_CASE("a domain is busy while an SRQ or a target belongs to it, and so is the CQ of an XRC SRQ", "[xrc]") {
  Device device;
  Domain domain(device);
  Cq cq(device);
  {
    const XrcSrq srq(domain, cq);
    CHECK(ibv_close_xrcd(domain.xrcd) == EBUSY);
    CHECK(ibv_destroy_cq(cq.cq) == EBUSY);
  }
  const Qp target(device, create_target(domain));
  CHECK(ibv_close_xrcd(domain.xrcd) == EBUSY);
}

TEST_CASE("an XRC SRQ needs a PD, a domain and a CQ of its own context", "[xrc][srq]") {
  Device device;
  Device other;
  Domain domain(device);
  Cq cq(device);
  const ibv_srq_init_attr_ex good = srq_attr(domain, cq);
  const auto refused = [&](auto spoil) {
    ibv_srq_init_attr_ex attr = good;
    spoil(attr);
    errno = 0;
    ibv_srq* const srq = ibv_create_srq_ex(device.context, &attr);
    if (srq != nullptr) CHECK(ibv_destroy_srq(srq) == 0);
    return errno;
  };
  using Attr = ibv_srq_init_attr_ex&;
  CHECK(refused([](Attr) {}) == 0);
  CHECK(refused([](Attr attr) { attr.comp_mask &= ~unsigned{IBV_SRQ_INIT_ATTR_XRCD}; }) == EINVAL);
  CHECK(refused([](Attr attr) { attr.comp_mask &= ~unsigned{IBV_SRQ_INIT_ATTR_CQ}; }) == EINVAL);
  CHECK(refused([](Attr attr) { attr.comp_mask &= ~unsigned{IBV_SRQ_INIT_ATTR_PD}; }) == EINVAL);
  CHECK(refused([](Attr attr) { attr.comp_mask |= 1 << 5; }) == EOPNOTSUPP);
  CHECK(refused([](Attr attr) { attr.srq_type = IBV_SRQT_TM; }) == EOPNOTSUPP);
  CHECK(refused([](Attr attr) { attr.attr.max_wr = 1 << 20; }) == EINVAL);
  CHECK(refused([&](Attr attr) { attr.pd = other.pd; }) == EINVAL);
}

TEST_CASE("queue pairs of XRC are made from what they have: a target from a domain, an initiator from a CQ", "[xrc]") {
  XrcPair p;
  CHECK(p.target.qp->pd == nullptr);
  CHECK(p.target.qp->qp_type == IBV_QPT_XRC_RECV);
  ibv_qp_init_attr plain = rc_attr(p.send_cq.cq, p.recv_cq.cq);
  plain.qp_type = IBV_QPT_XRC_RECV;
  CHECK(ibv_create_qp(p.device.pd, &plain) == nullptr);
  CHECK(errno == EINVAL);
  ibv_qp_init_attr_ex without{};
  without.qp_type = IBV_QPT_XRC_RECV;
  without.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  without.pd = p.device.pd;
  CHECK(ibv_create_qp_ex(p.device.context, &without) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(create_initiator(p.device, nullptr) == nullptr);
  CHECK(errno == EINVAL);
  ibv_qp_init_attr with_xrc_srq = rc_attr(p.send_cq.cq, p.recv_cq.cq);
  with_xrc_srq.srq = p.srq.srq;
  CHECK(ibv_create_qp(p.device.pd, &with_xrc_srq) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("neither end of XRC takes receives, and a target takes no sends", "[xrc][post]") {
  XrcPair p;
  CHECK(p.target.post_recv(1, {p.memory.sge(0, 8)}) == ENOMEM);
  CHECK(p.initiator.post_recv(1, {p.memory.sge(0, 8)}) == ENOMEM);
  CHECK(p.target.post_send(1, {p.memory.sge(0, 8)}) == ENOMEM);
}

TEST_CASE("a message completes at the SRQ that it names, with the target's number", "[xrc]") {
  XrcPair p;
  Cq other_cq(p.device);
  XrcSrq other(p.domain, other_cq);
  p.memory.fill(1);
  REQUIRE(p.srq.post(1, p.memory.sge(4096, 100)) == 0);
  REQUIRE(other.post(2, p.memory.sge(5000, 100)) == 0);
  REQUIRE(post_to(p.initiator.qp, other.number, IBV_WR_SEND, p.memory.sge(0, 60)) == 0);
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_SEND, p.memory.sge(100, 50)) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(p.send_cq.take().status == IBV_WC_SUCCESS);
  const ibv_wc there = other_cq.take();
  CHECK(there.wr_id == 2);
  CHECK(there.byte_len == 60);
  CHECK(there.qp_num == p.target.qp->qp_num);
  const ibv_wc here = p.recv_cq.take();
  CHECK(here.wr_id == 1);
  CHECK(here.qp_num == p.target.qp->qp_num);
  CHECK(std::equal(&p.memory.bytes[0], &p.memory.bytes[60], &p.memory.bytes[5000]));
  CHECK(std::equal(&p.memory.bytes[100], &p.memory.bytes[150], &p.memory.bytes[4096]));
}

TEST_CASE("polling the CQ of an SRQ that came after the target takes in what arrives", "[xrc][poll]") {
  XrcPair p;
  Cq late_cq(p.device);
  XrcSrq late(p.domain, late_cq);
  REQUIRE(late.post(3, p.memory.sge(0, 8)) == 0);
  REQUIRE(post_to(p.initiator.qp, late.number, IBV_WR_SEND, p.memory.sge(0, 8)) == 0);
  CHECK(late_cq.take().wr_id == 3);
}

TEST_CASE("writes and reads name an SRQ as sends do", "[xrc]") {
  XrcPair p;
  Memory far(p.device, 4096);
  p.memory.fill(9);
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_RDMA_WRITE, p.memory.sge(0, 3000), &far) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(std::equal(far.bytes.begin(), far.bytes.begin() + 3000, p.memory.bytes.begin()));
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_RDMA_READ, p.memory.sge(4096, 3000), &far) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(std::equal(far.bytes.begin(), far.bytes.begin() + 3000, p.memory.bytes.begin() + 4096));
}

TEST_CASE("an SRQ number that is missing, unknown or of another domain fails both ends", "[xrc]") {
  const int which = GENERATE(0, 1, 2);
  XrcPair p;
  Domain elsewhere(p.device);
  const XrcSrq foreign(elsewhere, p.recv_cq);
  const std::uint32_t srqn = which == 0 ? 0 : which == 1 ? p.srq.number ^ 0x800000 : foreign.number;
  REQUIRE(post_to(p.initiator.qp, srqn, IBV_WR_SEND, p.memory.sge(0, 8)) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_REM_INV_REQ_ERR);
  CHECK(p.recv_cq.is_empty());
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(p.target.qp, &attr, IBV_QP_STATE, &init) == 0);
  CHECK(attr.qp_state == IBV_QPS_ERR);
}

TEST_CASE("an SRQ that is destroyed takes its completions with it, and is none of the domain's any more", "[xrc]") {
  XrcPair p;
  REQUIRE(p.srq.post(1, p.memory.sge(0, 8)) == 0);
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_SEND, p.memory.sge(0, 8)) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(ibv_destroy_srq(p.srq.srq) == 0);
  p.srq.srq = nullptr;
  CHECK(p.recv_cq.is_empty());
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_SEND, p.memory.sge(0, 8)) == 0);
  CHECK(p.send_cq.take().status == IBV_WC_REM_INV_REQ_ERR);
}

TEST_CASE("two handles of one file are one domain", "[xrc]") {
  Device device;
  File file;
  Domain first(device, file.fd);
  Domain second(device, file.fd);
  Cq send_cq(device);
  Cq recv_cq(device);
  Memory memory(device, 64);
  Qp target(device, create_target(first));
  Qp initiator(device, create_initiator(device, send_cq.cq));
  initiator.connect(target);
  target.connect(initiator);
  XrcSrq srq(second, recv_cq);
  REQUIRE(srq.post(4, memory.sge(0, 8)) == 0);
  REQUIRE(post_to(initiator.qp, srq.number, IBV_WR_SEND, memory.sge(8, 8)) == 0);
  CHECK(recv_cq.take().wr_id == 4);
}

TEST_CASE("the ibv_wr_ interface names the SRQ by a setter, which belongs to XRC alone", "[xrc][wr_builder]") {
  XrcPair p(IBV_QP_EX_WITH_SEND);
  REQUIRE(p.srq.post(1, p.memory.sge(100, 8)) == 0);
  ibv_qp_ex* const qp = ibv_qp_to_qp_ex(p.initiator.qp);
  REQUIRE(qp != nullptr);
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_xrc_srqn(qp, p.srq.number);
  const ibv_sge sge = p.memory.sge(0, 8);
  ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
  REQUIRE(ibv_wr_complete(qp) == 0);
  CHECK(p.recv_cq.take().status == IBV_WC_SUCCESS);

  ibv_qp_init_attr_ex attr{};
  attr.qp_type = IBV_QPT_RC;
  attr.send_cq = attr.recv_cq = p.send_cq.cq;
  attr.cap = {4, 4, 1, 1, 0};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = p.device.pd;
  attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
  const Qp rc(p.device, ibv_create_qp_ex(p.device.context, &attr));
  ibv_qp_ex* const plain = ibv_qp_to_qp_ex(rc.qp);
  ibv_wr_start(plain);
  ibv_wr_send(plain);
  ibv_wr_set_xrc_srqn(plain, 1);
  CHECK(ibv_wr_complete(plain) == EINVAL);
}

TEST_CASE("a target can be opened again by its number, and lives as long as one of its handles", "[xrc]") {
  XrcPair p;
  ibv_qp_open_attr attr{};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
  attr.qp_num = p.target.qp->qp_num;
  attr.xrcd = p.domain.xrcd;
  attr.qp_context = &attr;
  attr.qp_type = IBV_QPT_XRC_RECV;
  ibv_qp* const opened = ibv_open_qp(p.device.context, &attr);
  REQUIRE(opened != nullptr);
  CHECK(opened != p.target.qp);
  CHECK(opened->qp_num == p.target.qp->qp_num);
  CHECK(opened->qp_context == &attr);

  CHECK(ibv_destroy_qp(p.target.qp) == 0);
  p.target.qp = nullptr;
  CHECK(ibv_close_xrcd(p.domain.xrcd) == EBUSY);
  REQUIRE(p.srq.post(1, p.memory.sge(0, 8)) == 0);
  REQUIRE(post_to(p.initiator.qp, p.srq.number, IBV_WR_SEND, p.memory.sge(8, 8)) == 0);
  CHECK(p.recv_cq.take().qp_num == opened->qp_num);
  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_ERR;
  CHECK(ibv_modify_qp(opened, &state, IBV_QP_STATE) == 0);
  CHECK(opened->state == IBV_QPS_ERR);
  CHECK(ibv_destroy_qp(opened) == 0);
  CHECK(ibv_open_qp(p.device.context, &attr) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("what is no target of the domain cannot be opened", "[xrc]") {
  XrcPair p;
  Domain elsewhere(p.device);
  const auto refused = [&](std::uint32_t qpn, ibv_xrcd* xrcd, ibv_qp_type type, std::uint32_t mask) {
    ibv_qp_open_attr attr{};
    attr.comp_mask = mask;
    attr.qp_num = qpn;
    attr.xrcd = xrcd;
    attr.qp_type = type;
    CHECK(ibv_open_qp(p.device.context, &attr) == nullptr);
    return errno;
  };
  constexpr std::uint32_t kMask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  const std::uint32_t target = p.target.qp->qp_num;
  CHECK(refused(p.initiator.qp->qp_num, p.domain.xrcd, IBV_QPT_XRC_RECV, kMask) == EINVAL);
  CHECK(refused(target, elsewhere.xrcd, IBV_QPT_XRC_RECV, kMask) == EINVAL);
  CHECK(refused(target, p.domain.xrcd, IBV_QPT_RC, kMask) == EINVAL);
  CHECK(refused(target, p.domain.xrcd, IBV_QPT_XRC_RECV, IBV_QP_OPEN_ATTR_NUM) == EINVAL);
  CHECK(refused(target, p.domain.xrcd, IBV_QPT_XRC_RECV, kMask | 1 << 4) == EOPNOTSUPP);
}
