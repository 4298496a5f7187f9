// SPDX-License-Identifier: MIT
// What is wrong between two queue pairs: rights, limits, lengths, Q_Keys, no receive, no peer, no room.
#include <array>
#include <cerrno>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

constexpr int kRemoteAll =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

// Another pair of queue pairs in place of the bench's.
struct Pair {
  Pair(Bench& bench, const Ways& ways, ibv_qp_type type = IBV_QPT_RC)
      : a(bench.device, attr_of(bench, type)), b(bench.device, attr_of(bench, type)) {
    connect(a, b.qp->qp_num, ways);
    connect(b, a.qp->qp_num, ways);
    bench.names.add("c", a.qp->qp_num);
    bench.names.add("d", b.qp->qp_num);
  }
  Qp a;
  Qp b;
};

// Of memory that allows everything, by a queue pair whose peer has these ways.
std::string remote(Bench& bench, ibv_wr_opcode opcode, const Ways& ways, std::size_t offset = 0,
                   std::uint32_t length = 8) {
  Memory memory(bench.device, 64, kRemoteAll);
  Pair pair(bench, ways);
  const auto address = reinterpret_cast<std::uint64_t>(memory.bytes.data() + offset);
  bench.names.add("address", address);
  REQUIRE(bench.post_remote(pair.a, opcode, address, memory.mr->rkey, length) == 0);
  return bench.completions(1, 0);
}

int send_datagram(Bench& bench, Qp& from, const Qp& to, std::uint32_t qkey, std::uint32_t length) {
  ibv_ah* const ah = make_ah(bench.device, 0);
  const int answer = post_datagram(from, ah, to.qp->qp_num, bench.memory.sge(0, length), qkey);
  REQUIRE(ibv_destroy_ah(ah) == 0);
  return answer;
}

struct Datagrams {
  explicit Datagrams(Bench& bench)
      : a(bench.device, attr_of(bench, IBV_QPT_UD)), b(bench.device, attr_of(bench, IBV_QPT_UD)) {
    start_datagrams(a);
    start_datagrams(b);
    bench.names.add("c", a.qp->qp_num);
    bench.names.add("d", b.qp->qp_num);
  }
  Qp a;
  Qp b;
};

// What went to this process's port before this has arrived.
std::string and_a_marker(Bench& bench, const std::string& answer) {
  Qp marker(bench.device, attr_of(bench, IBV_QPT_UD));
  start_datagrams(marker);
  REQUIRE(marker.post_recv(3, {bench.memory.sge(4096, 64)}) == 0);
  REQUIRE(send_datagram(bench, marker, marker, kQkey, 8) == 0);
  REQUIRE(bench.completions(1, 1) == "send SUCCESS, recv SUCCESS");
  return answer;
}

}  // namespace

const std::vector<Mistake> kMistakesInMessages{
    {"a queue pair without remote write, written to",
     "send REM_INV_REQ_ERR",
     {"qp {c} send wr_id 0x1: the peer refused the request as invalid (too long for the receive posted there, or "
      "what its qp_access_flags or its max_dest_rd_atomic do not allow)",
      "qp {d} received a write, but the queue pair has no IBV_ACCESS_REMOTE_WRITE; the sender gets REM_INV_REQ_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_RDMA_WRITE, Ways{.access = IBV_ACCESS_REMOTE_READ}); }},
    {"a queue pair without remote read, read from",
     "send REM_INV_REQ_ERR",
     {"qp {c} send wr_id 0x1: the peer refused the request as invalid (too long for the receive posted there, or "
      "what its qp_access_flags or its max_dest_rd_atomic do not allow)",
      "qp {d} received a read, but the queue pair has no IBV_ACCESS_REMOTE_READ; the sender gets REM_INV_REQ_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_RDMA_READ, Ways{.access = IBV_ACCESS_REMOTE_WRITE}); }},
    {"a queue pair without remote atomics, counted in",
     "send REM_INV_REQ_ERR",
     {"qp {c} send wr_id 0x1: the peer refused the request as invalid (too long for the receive posted there, or "
      "what its qp_access_flags or its max_dest_rd_atomic do not allow)",
      "qp {d} received an atomic, but the queue pair has no IBV_ACCESS_REMOTE_ATOMIC; the sender gets "
      "REM_INV_REQ_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, Ways{.access = IBV_ACCESS_REMOTE_WRITE}); }},
    {"a read where max_dest_rd_atomic is 0",
     "send REM_INV_REQ_ERR",
     {"qp {c} send wr_id 0x1: the peer refused the request as invalid (too long for the receive posted there, or "
      "what its qp_access_flags or its max_dest_rd_atomic do not allow)",
      "qp {d} received more reads and atomics at once than max_dest_rd_atomic (0) allows; the sender gets "
      "REM_INV_REQ_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_RDMA_READ, Ways{.max_dest_rd_atomic = 0}); }},
    {"an atomic at an address that is no multiple of 8",
     "send REM_INV_REQ_ERR",
     {"qp {c} send wr_id 0x1: the peer refused the request as invalid (the address of an atomic has to be a multiple "
      "of 8)",
      "qp {d} received an atomic at {address}, which is not a multiple of 8; the sender gets REM_INV_REQ_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, Ways{}, 4); }},
    {"an atomic into a list that does not hold 8 bytes",
     "send LOC_LEN_ERR",
     {"qp {c} send wr_id 0x1: an atomic returns 8 bytes, and its list holds 4; completes with LOC_LEN_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, Ways{}, 0, 4); }},
    {"a receive list that is too short",
     "send REM_INV_REQ_ERR, recv LOC_LEN_ERR",
     {"qp {a} send wr_id 0x1: the peer refused the request as invalid (too long for the receive posted there, or "
      "what its qp_access_flags or its max_dest_rd_atomic do not allow)",
      "qp {b} recv wr_id 0x2: a message of at least 10 bytes does not fit the 9 bytes posted (2 SGEs); the sender "
      "gets REM_INV_REQ_ERR"},
     [](Bench& bench) {
       REQUIRE(bench.b.post_recv(2, {bench.memory.sge(4096, 4), bench.memory.sge(5000, 5)}) == 0);
       REQUIRE(bench.a.post_send(1, {bench.memory.sge(0, 10)}) == 0);
       return bench.completions(1, 1);
     }},
    {"no receive posted, as long as rnr_retry allows",
     "send RNR_RETRY_EXC_ERR",
     {"qp {c} {own address} answered RNR 2 times (no receive posted there); rnr_retry is 1, 7 would wait for "
      "ever"},
     [](Bench& bench) {
       Pair pair(bench, {.rnr_retry = 1});
       REQUIRE(pair.a.post_send(1, {bench.memory.sge(0, 8)}) == 0);
       return bench.completions(1, 0);
     }},
    {"no receive posted at an unreliable connection",
     "send SUCCESS",
     {"qp {d} dropped a message: no receive was posted, and the sender does not hear of it"},
     [](Bench& bench) {
       Pair pair(bench, {.access = 0}, IBV_QPT_UC);
       REQUIRE(pair.a.post_send(1, {bench.memory.sge(0, 8)}) == 0);
       return and_a_marker(bench, bench.completions(1, 0));
     }},
    {"no receive posted for a datagram",
     "send SUCCESS",
     {"qp {d} dropped a datagram from qp {c} of {own address}: no receive was posted, and the sender does not "
      "hear of it"},
     [](Bench& bench) {
       Datagrams datagrams(bench);
       REQUIRE(send_datagram(bench, datagrams.a, datagrams.b, kQkey, 8) == 0);
       return and_a_marker(bench, bench.completions(1, 0));
     }},
    {"a wrong Q_Key",
     "send SUCCESS",
     {"qp {d} dropped a datagram from qp {c} of {own address}: its Q_Key is 0x11111112, the one of this queue "
      "pair 0x11111111"},
     [](Bench& bench) {
       Datagrams datagrams(bench);
       REQUIRE(datagrams.b.post_recv(2, {bench.memory.sge(4096, 64)}) == 0);
       REQUIRE(send_datagram(bench, datagrams.a, datagrams.b, kQkey + 1, 8) == 0);
       return and_a_marker(bench, bench.completions(1, 0));
     }},
    {"a datagram longer than the MTU",
     "send LOC_LEN_ERR",
     {"qp {c} send wr_id 0x0: a datagram of 5000 bytes does not fit the {MTU}; completes with LOC_LEN_ERR"},
     [](Bench& bench) {
       Datagrams datagrams(bench);
       REQUIRE(send_datagram(bench, datagrams.a, datagrams.b, kQkey, 5000) == 0);
       return bench.completions(1, 0);
     }},
    {"a datagram to a number that no queue pair has",
     "send SUCCESS",
     {"packets to queue pair numbers below 0x100 are lost: no queue pair has such a number; give the peer's own qp_num "
      "(remote_qpn, dest_qp_num)"},
     [](Bench& bench) {
       Datagrams datagrams(bench);
       ibv_ah* const ah = make_ah(bench.device, 0);
       REQUIRE(post_datagram(datagrams.a, ah, 0x11, bench.memory.sge(0, 8), kQkey) == 0);
       REQUIRE(ibv_destroy_ah(ah) == 0);
       return bench.completions(1, 0);
     }},
    {"a receive of a datagram without room for its GRH",
     "send SUCCESS, recv LOC_LEN_ERR",
     {"qp {d} recv wr_id 0x2: a datagram of 8 bytes and the 40 of its GRH do not fit the 47 bytes posted; "
      "completes with LOC_LEN_ERR"},
     [](Bench& bench) {
       Datagrams datagrams(bench);
       REQUIRE(datagrams.b.post_recv(2, {bench.memory.sge(4096, 47)}) == 0);
       REQUIRE(send_datagram(bench, datagrams.a, datagrams.b, kQkey, 8) == 0);
       return bench.completions(1, 1);
     }},
    {"a peer that is gone",
     "send RETRY_EXC_ERR",
     {"qp {qp} no answer from {own address} after 2 tries with an ack timeout of 2^8 * 4.096 us; is the peer alive "
      "and is its queue pair in RTR or RTS?"},
     [](Bench& bench) {
       std::uint32_t gone = 0;
       {
         const Qp peer(bench.device, attr_of(bench));
         gone = peer.qp->qp_num;
       }
       Qp qp(bench.device, attr_of(bench));
       bench.names.add("qp", qp.qp->qp_num);
       connect(qp, gone, {.timeout = 8, .retry_cnt = 1});
       REQUIRE(qp.post_send(1, {bench.memory.sge(0, 8)}) == 0);
       return bench.completions(1, 0);
     }},
    {"requests posted in ERR",
     "send WR_FLUSH_ERR, recv WR_FLUSH_ERR",
     {},
     [](Bench& bench) {
       REQUIRE(bench.a.to_error() == 0);
       REQUIRE(bench.a.post_send(1, {bench.memory.sge(0, 8)}) == 0);
       REQUIRE(bench.a.post_recv(1, {bench.memory.sge(0, 8)}) == 0);
       return bench.completions(1, 1);
     }},
    {"more completions than the CQ holds",
     "event CQ_ERR, ibv_poll_cq -1, ibv_req_notify_cq EIO, ibv_resize_cq EIO",
     {"ibv_poll_cq: EIO, the CQ is overrun: a completion came when all its entries (1) were taken, and its queue pairs "
      "went to ERR; create it with room for all that may complete before it is polled",
      "ibv_req_notify_cq: EIO, the CQ is overrun: a completion came when all its entries (1) were taken, and "
      "its queue pairs went to ERR; create it with room for all that may complete before it is polled",
      "ibv_resize_cq: EIO, the CQ is overrun: a completion came when all its entries (1) were taken, and its "
      "queue pairs went to ERR; create it with room for all that may complete before it is polled",
      "qp {qp} its completion queue is overrun and took no more of its completions; it goes to ERR (QP_FATAL)"},
     [](Bench& bench) {
       Cq small(bench.device, 1);
       bench.names.add("cq", reinterpret_cast<std::uintptr_t>(small.cq));
       ibv_qp_init_attr attr = attr_of(bench);
       attr.send_cq = small.cq;
       Qp qp(bench.device, attr);
       bench.names.add("qp", qp.qp->qp_num);
       REQUIRE(qp.to_init() == 0);
       REQUIRE(qp.to_error() == 0);
       for (int i = 0; i < 2; ++i) REQUIRE(qp.post_send(1, {}) == 0);
       ibv_async_event event{};
       REQUIRE(ibv_get_async_event(bench.device.context, &event) == 0);
       std::string answer = event.event_type == IBV_EVENT_CQ_ERR ? "event CQ_ERR" : "another event";
       ibv_ack_async_event(&event);
       ibv_wc wc{};
       answer += ", ibv_poll_cq " + std::to_string(ibv_poll_cq(small.cq, 1, &wc));
       answer += ", ibv_req_notify_cq " + Bench::errno_name(ibv_req_notify_cq(small.cq, 0));
       return answer + ", ibv_resize_cq " + Bench::errno_name(ibv_resize_cq(small.cq, 8));
     }},
};

}  // namespace nicless::test
