// SPDX-License-Identifier: MIT
// Goal: memory windows as programs use them: ibv_alloc_mw(3), ibv_bind_mw(3), IBV_WR_BIND_MW, IBV_WR_LOCAL_INV and
// IBV_WR_SEND_WITH_INV, posted either way. Method: two queue pairs of this process, over real sockets.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

const int kBindable = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
const unsigned kRemoteWrite = IBV_ACCESS_REMOTE_WRITE;

class Window {
 public:
  Window(Device& device, ibv_mw_type type) : mw(ibv_alloc_mw(device.pd, type)) { REQUIRE(mw != nullptr); }
  ~Window() { CHECK(ibv_dealloc_mw(mw) == 0); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ibv_mw* const mw;
};

// A writes to B's memory, and B has windows on it.
struct Pair {
  Pair() : a_cq(device), b_cq(device), memory(device, 8192), region(device, 8192, kBindable), a(device, attr(a_cq)) {
    ibv_qp_init_attr_ex extended{};
    extended.send_cq = extended.recv_cq = b_cq.cq;
    extended.cap = {8, 8, 2, 2, 64};
    extended.qp_type = IBV_QPT_RC;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = device.pd;
    extended.send_ops_flags =
        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
    b = std::make_unique<Qp>(device, ibv_create_qp_ex(device.context, &extended));
    ex = ibv_qp_to_qp_ex(b->qp);
    REQUIRE(ex != nullptr);
    a.connect(*b);
    b->connect(a);
    memory.fill(3);
  }
  static ibv_qp_init_attr attr(Cq& cq) { return rc_attr(cq.cq, cq.cq); }

  ibv_mw_bind_info info(std::size_t offset = 0, std::size_t length = 4096, unsigned access = kRemoteWrite) {
    return {region.mr, reinterpret_cast<std::uintptr_t>(region.bytes.data()) + offset, length, access};
  }
  int bind_type_1(ibv_mw* mw, const ibv_mw_bind_info& how) {
    ibv_mw_bind bind{};
    bind.wr_id = 5;
    bind.send_flags = IBV_SEND_SIGNALED;
    bind.bind_info = how;
    return ibv_bind_mw(b->qp, mw, &bind);
  }
  int post_bind(ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info& how) {
    ibv_send_wr wr{};
    wr.wr_id = 6;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = rkey;
    wr.bind_mw.bind_info = how;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(b->qp, &wr, &bad);
  }
  ibv_wc_status write(std::uint32_t rkey, std::uint64_t address) {
    ibv_sge sge = memory.sge(0, 100);
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma = {address, rkey};
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(a.qp, &wr, &bad) == 0);
    return a_cq.take().status;
  }
  std::uint64_t address(std::size_t offset = 0) {
    return reinterpret_cast<std::uintptr_t>(region.bytes.data()) + offset;
  }

  Device device;
  Cq a_cq;
  Cq b_cq;
  Memory memory;
  Memory region;
  Qp a;
  std::unique_ptr<Qp> b;
  ibv_qp_ex* ex = nullptr;
};

}  // namespace

TEST_CASE("a type 1 window gets its new key from ibv_bind_mw, and a length of 0 ends it", "[mw]") {
  Pair pair;
  const Window window(pair.device, IBV_MW_TYPE_1);
  const std::uint32_t before = window.mw->rkey;
  REQUIRE(pair.bind_type_1(window.mw, pair.info(100)) == 0);
  CHECK(window.mw->rkey == ibv_inc_rkey(before));
  const ibv_wc bound = pair.b_cq.take();
  CHECK(bound.status == IBV_WC_SUCCESS);
  CHECK(bound.opcode == IBV_WC_BIND_MW);
  CHECK(bound.wr_id == 5);
  CHECK(ibv_dereg_mr(pair.region.mr) == EBUSY);
  CHECK(pair.write(window.mw->rkey, pair.address(100)) == IBV_WC_SUCCESS);
  CHECK(std::equal(pair.memory.bytes.begin(), pair.memory.bytes.begin() + 100, pair.region.bytes.begin() + 100));
  const std::uint32_t stale = window.mw->rkey;
  REQUIRE(pair.bind_type_1(window.mw, pair.info(0, 0, 0)) == 0);
  CHECK(pair.b_cq.take().status == IBV_WC_SUCCESS);
  CHECK(pair.write(stale, pair.address(100)) == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("a type 2 window is bound and invalidated by work requests of the program's key", "[mw]") {
  const bool is_built = GENERATE(false, true);
  Pair pair;
  const Window window(pair.device, IBV_MW_TYPE_2);
  const std::uint32_t rkey = ibv_inc_rkey(window.mw->rkey);
  const ibv_mw_bind_info info = pair.info(0, 4096, kRemoteWrite | IBV_ACCESS_ZERO_BASED);
  if (is_built) {
    ibv_wr_start(pair.ex);
    pair.ex->wr_id = 6;
    pair.ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(pair.ex, window.mw, rkey, &info);
    REQUIRE(ibv_wr_complete(pair.ex) == 0);
  } else {
    REQUIRE(pair.post_bind(window.mw, rkey, info) == 0);
  }
  const ibv_wc bound = pair.b_cq.take();
  CHECK(bound.status == IBV_WC_SUCCESS);
  CHECK(bound.opcode == IBV_WC_BIND_MW);
  CHECK(bound.wr_id == 6);
  CHECK(pair.write(rkey, 10) == IBV_WC_SUCCESS);
  CHECK(std::equal(pair.memory.bytes.begin(), pair.memory.bytes.begin() + 100, pair.region.bytes.begin() + 10));
  if (is_built) {
    ibv_wr_start(pair.ex);
    ibv_wr_local_inv(pair.ex, rkey);
    REQUIRE(ibv_wr_complete(pair.ex) == 0);
  } else {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = rkey;
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(pair.b->qp, &wr, &bad) == 0);
  }
  const ibv_wc invalidated = pair.b_cq.take();
  CHECK(invalidated.status == IBV_WC_SUCCESS);
  CHECK(invalidated.opcode == IBV_WC_LOCAL_INV);
  CHECK(pair.write(rkey, 10) == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("a peer's send invalidates a window, and the completion names the key", "[mw]") {
  const bool is_built = GENERATE(false, true);
  Pair pair;
  // The window is on memory for the queue pair that receives: the one that posts plainly, or the one that builds.
  Qp& owner = is_built ? pair.a : *pair.b;
  Cq& owner_cq = is_built ? pair.a_cq : pair.b_cq;
  const Window window(pair.device, IBV_MW_TYPE_2);
  const std::uint32_t rkey = ibv_inc_rkey(window.mw->rkey);
  ibv_send_wr bind{};
  bind.opcode = IBV_WR_BIND_MW;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_mw.mw = window.mw;
  bind.bind_mw.rkey = rkey;
  bind.bind_mw.bind_info = pair.info();
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(owner.qp, &bind, &bad) == 0);
  CHECK(owner_cq.take().status == IBV_WC_SUCCESS);
  REQUIRE(owner.post_recv(7, {pair.memory.sge(4096, 100)}) == 0);
  if (is_built) {
    ibv_wr_start(pair.ex);
    pair.ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_inv(pair.ex, rkey);
    const ibv_sge sge = pair.memory.sge(0, 100);
    ibv_wr_set_sge(pair.ex, sge.lkey, sge.addr, sge.length);
    REQUIRE(ibv_wr_complete(pair.ex) == 0);
  } else {
    ibv_sge sge = pair.memory.sge(0, 100);
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.invalidate_rkey = rkey;
    REQUIRE(ibv_post_send(pair.a.qp, &wr, &bad) == 0);
  }
  const ibv_wc received = owner_cq.take();
  CHECK(received.wr_id == 7);
  CHECK(received.status == IBV_WC_SUCCESS);
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.byte_len == 100);
  CHECK(received.wc_flags == IBV_WC_WITH_INV);
  CHECK(received.invalidated_rkey == rkey);
  CHECK((is_built ? pair.b_cq : pair.a_cq).take().status == IBV_WC_SUCCESS);
  CHECK(ibv_dereg_mr(pair.region.mr) == 0);
  pair.region.mr = nullptr;
}

TEST_CASE("a window ends with its queue pair, or with its deallocation", "[mw]") {
  Pair pair;
  auto* const mw = ibv_alloc_mw(pair.device.pd, IBV_MW_TYPE_2);
  REQUIRE(mw != nullptr);
  REQUIRE(pair.post_bind(mw, ibv_inc_rkey(mw->rkey), pair.info()) == 0);
  CHECK(pair.b_cq.take().status == IBV_WC_SUCCESS);
  CHECK(ibv_dereg_mr(pair.region.mr) == EBUSY);
  SECTION("queue pair") {
    pair.b.reset();
    CHECK(ibv_dereg_mr(pair.region.mr) == 0);
    CHECK(ibv_dealloc_pd(pair.device.pd) == EBUSY);
    CHECK(ibv_dealloc_mw(mw) == 0);
  }
  SECTION("window") {
    CHECK(ibv_dealloc_mw(mw) == 0);
    CHECK(ibv_dereg_mr(pair.region.mr) == 0);
  }
  pair.region.mr = nullptr;
}

TEST_CASE("what cannot be asked for is refused when it is posted", "[mw]") {
  Pair pair;
  const Window one(pair.device, IBV_MW_TYPE_1);
  const Window two(pair.device, IBV_MW_TYPE_2);
  ibv_mr* const null_mr = ibv_alloc_null_mr(pair.device.pd);
  REQUIRE(null_mr != nullptr);
  ibv_mw_bind_info info = pair.info();
  CHECK(pair.bind_type_1(one.mw, pair.info(0, 10, kRemoteWrite | IBV_ACCESS_ZERO_BASED)) == EINVAL);
  CHECK(pair.bind_type_1(two.mw, info) == EINVAL);
  CHECK(pair.post_bind(nullptr, 1, info) == EINVAL);
  CHECK(pair.post_bind(two.mw, two.mw->rkey + 0x100, info) == EINVAL);
  info.mr = nullptr;
  CHECK(pair.post_bind(two.mw, two.mw->rkey, info) == EINVAL);
  info.mr = null_mr;
  CHECK(pair.post_bind(two.mw, two.mw->rkey, info) == EOPNOTSUPP);
  CHECK(pair.b_cq.is_empty());
  const std::uint32_t before = one.mw->rkey;
  ibv_wr_start(pair.ex);
  ibv_wr_bind_mw(pair.ex, two.mw, two.mw->rkey, &info);
  CHECK(ibv_wr_complete(pair.ex) == EOPNOTSUPP);
  CHECK(one.mw->rkey == before);
  CHECK(ibv_dereg_mr(null_mr) == 0);
  errno = 0;
  CHECK(ibv_alloc_mw(pair.device.pd, static_cast<ibv_mw_type>(3)) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("what is found wrong when it is carried out completes with MW_BIND_ERR", "[mw]") {
  Pair pair;
  const Window window(pair.device, IBV_MW_TYPE_2);
  const Memory closed(pair.device, 100);  // without IBV_ACCESS_MW_BIND
  ibv_mw_bind_info info = pair.info();
  SECTION("a region that is not for windows") {
    info = {closed.mr, reinterpret_cast<std::uintptr_t>(closed.bytes.data()), 100, kRemoteWrite};
  }
  SECTION("beyond the region") {
    info.length = 8193;
  }
  REQUIRE(pair.post_bind(window.mw, window.mw->rkey, info) == 0);
  const ibv_wc wc = pair.b_cq.take();
  CHECK(wc.wr_id == 6);
  CHECK(wc.status == IBV_WC_MW_BIND_ERR);
}

TEST_CASE("the device says what windows it has", "[mw]") {
  Device device;
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(device.context, &attr) == 0);
  CHECK(attr.max_mw > 0);
  CHECK((attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) != 0);
  CHECK((attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0);
  CHECK((attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2A) == 0);
}
