// SPDX-License-Identifier: MIT
// Goal: what a user asks for with --rnr, --fail and --delay happens to a program's messages as if it were so:
// nicless(1). A queue pair that stops before a late answer belongs here, too.
// Method: the variables are the process's, so each case is run by itself with those that it names (meson.build).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/provider/datagrams.h"
#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

void require_variable(const char* name, const char* value) {
  const char* const set = std::getenv(name);
  REQUIRE(set != nullptr);
  REQUIRE(set == std::string(value));
}

ibv_qp_state state_of(Qp& qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(qp.qp, &attr, IBV_QP_STATE, &init) == 0);
  return attr.qp_state;
}

// Two connected ends, each with a CQ of its own; rnr_retry is the sender's, a.
struct Connected {
  explicit Connected(std::uint8_t rnr_retry = 7) {
    a.connect(b, rnr_retry);
    b.connect(a);
  }
  Device device;
  Cq a_cq{device}, b_cq{device};
  Memory memory{device, 8192};
  Qp a{device, rc_attr(a_cq.cq, a_cq.cq)};
  Qp b{device, rc_attr(b_cq.cq, b_cq.cq)};
};

}  // namespace

// NICLESS_RNR=4
TEST_CASE("a message that is denied a receive is sent again until it finds one", "[.][rnr]") {
  require_variable("NICLESS_RNR", "4");
  Connected c;
  c.memory.fill(3);
  REQUIRE(c.b.post_recv(1, {c.memory.sge(4096, 100)}) == 0);
  REQUIRE(c.a.post_send(2, {c.memory.sge(0, 100)}) == 0);
  CHECK(c.a_cq.take().status == IBV_WC_SUCCESS);
  CHECK(c.b_cq.take().byte_len == 100);
  CHECK(std::equal(c.memory.bytes.begin(), c.memory.bytes.begin() + 100, c.memory.bytes.begin() + 4096));
}

// NICLESS_RNR=4
TEST_CASE("a message that is denied a receive more often than rnr_retry allows fails", "[.][rnr_exceeded]") {
  require_variable("NICLESS_RNR", "4");
  Connected c(3);
  REQUIRE(c.b.post_recv(1, {c.memory.sge(4096, 100)}) == 0);
  REQUIRE(c.a.post_send(2, {c.memory.sge(0, 100)}) == 0);
  CHECK(c.a_cq.take().status == IBV_WC_RNR_RETRY_EXC_ERR);
  CHECK(c.b_cq.is_empty());
}

// NICLESS_RNR=4
TEST_CASE("a datagram that is denied a receive is lost, and the next one takes it", "[.][rnr_ud]") {
  require_variable("NICLESS_RNR", "4");
  Device device;
  Cq cq(device);
  Cq b_cq(device);
  Memory memory(device, 8192);
  Qp a(device, datagram_attr(cq));
  Qp b(device, datagram_attr(b_cq));
  start_datagrams(a);
  start_datagrams(b);
  ibv_ah* const to_b = make_ah(device, 0);
  REQUIRE(b.post_recv(1, {memory.sge(4096, 200)}) == 0);
  for (std::uint8_t number = 1; number <= 5; ++number) {
    memory.bytes[0] = number;
    REQUIRE(post_datagram(a, to_b, b.qp->qp_num, memory.sge(0, 1)) == 0);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
  }
  CHECK(b_cq.take().byte_len == 41);
  CHECK(memory.bytes[4096 + 40] == 5);
  CHECK(ibv_destroy_ah(to_b) == 0);
}

// NICLESS_DELAY=5ms
TEST_CASE("what was sent is answered, not flushed, when its queue pair is told to stop before the answer has come",
          "[.][late_answer]") {
  require_variable("NICLESS_DELAY", "5ms");
  Connected c;
  REQUIRE(c.b.post_recv(1, {c.memory.sge(4096, 100)}) == 0);
  REQUIRE(c.a.post_send(2, {c.memory.sge(0, 100)}) == 0);
  REQUIRE(c.a.to_error() == 0);
  CHECK(c.a_cq.take().status == IBV_WC_SUCCESS);
  CHECK(c.b_cq.take().byte_len == 100);
}

// NICLESS_FAIL=2:RETRY_EXC_ERR
TEST_CASE("the request that has to fail does, after those before it, and takes its queue pair along", "[.][fail]") {
  require_variable("NICLESS_FAIL", "2:RETRY_EXC_ERR");
  Connected c;
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(c.b.post_recv(10 + i, {c.memory.sge(4096, 100)}) == 0);
  REQUIRE(c.a.post_recv(20, {c.memory.sge(4096, 100)}) == 0);
  for (std::uint64_t i = 1; i <= 3; ++i)
    REQUIRE(c.a.post_send(i, {c.memory.sge(0, 8)}, i == 2 ? 0 : IBV_SEND_SIGNALED) == 0);

  std::vector<ibv_wc_status> sends;
  std::vector<ibv_wc_status> receives;
  for (int i = 0; i < 4; ++i) {
    const ibv_wc wc = c.a_cq.take();
    (wc.wr_id == 20 ? receives : sends).push_back(wc.status);
  }
  CHECK(sends == std::vector{IBV_WC_SUCCESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR});
  CHECK(receives == std::vector{IBV_WC_WR_FLUSH_ERR});
  CHECK(state_of(c.a) == IBV_QPS_ERR);
  CHECK(c.b_cq.take().wr_id == 10);  // the first message; the second was never sent
  CHECK(c.b_cq.is_empty());
  CHECK(state_of(c.b) == IBV_QPS_RTS);
}

// NICLESS_FAIL=1:LOC_QP_OP_ERR
TEST_CASE("a datagram that has to fail leaves its queue pair in SQE", "[.][fail_ud]") {
  require_variable("NICLESS_FAIL", "1:LOC_QP_OP_ERR");
  Device device;
  Cq cq(device);
  Memory memory(device, 64);
  Qp qp(device, datagram_attr(cq));
  start_datagrams(qp);
  ibv_ah* const ah = make_ah(device, 0);
  REQUIRE(post_datagram(qp, ah, qp.qp->qp_num, memory.sge(0, 8)) == 0);
  CHECK(cq.take().status == IBV_WC_LOC_QP_OP_ERR);
  CHECK(state_of(qp) == IBV_QPS_SQE);
  CHECK(ibv_destroy_ah(ah) == 0);
}
