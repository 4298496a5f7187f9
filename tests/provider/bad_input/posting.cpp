// SPDX-License-Identifier: MIT
// What ibv_post_send, ibv_post_recv, ibv_post_srq_recv and ibv_wr_complete refuse at once.
#include <array>
#include <cerrno>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

constexpr std::size_t kTooMany = 5;  // the queue pairs of the bench take lists of four

std::string post(Qp& qp, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  const int answer = ibv_post_send(qp.qp, &wr, &bad);
  CHECK((answer == 0 || bad == &wr));
  return Bench::errno_name(answer);
}

ibv_send_wr send_of(ibv_sge& list, int count = 1, ibv_wr_opcode opcode = IBV_WR_SEND) {
  ibv_send_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = count;
  wr.opcode = opcode;
  return wr;
}

// Sends until one is refused.
std::string fill(Qp& qp, std::vector<ibv_sge> list, unsigned flags) {
  int answer = 0;
  for (int i = 0; i < 100 && answer == 0; ++i) answer = qp.post_send(1, list, flags);
  return Bench::errno_name(answer);
}

struct WithSrq {
  explicit WithSrq(Bench& bench) : srq(ibv_create_srq(bench.device.pd, &attr)) { REQUIRE(srq != nullptr); }
  ~WithSrq() { CHECK(ibv_destroy_srq(srq) == 0); }
  WithSrq(const WithSrq&) = delete;
  WithSrq& operator=(const WithSrq&) = delete;

  std::string post(std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    return Bench::errno_name(ibv_post_srq_recv(srq, &wr, &bad));
  }

  ibv_srq_init_attr attr{nullptr, {2, 4, 0}};
  ibv_srq* srq;
};

struct WithBuilder {
  explicit WithBuilder(Bench& bench) : qp(bench.device, make(bench)), ex(ibv_qp_to_qp_ex(qp.qp)) {
    REQUIRE(ex != nullptr);
    connect(qp, bench.b.qp->qp_num, {});
    bench.names.add("qp", qp.qp->qp_num);
  }
  static ibv_qp* make(Bench& bench) {
    const ibv_qp_init_attr attr = attr_of(bench);
    ibv_qp_init_attr_ex more{};
    more.send_cq = attr.send_cq;
    more.recv_cq = attr.recv_cq;
    more.cap = attr.cap;
    more.qp_type = attr.qp_type;
    more.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    more.pd = bench.device.pd;
    more.send_ops_flags = IBV_QP_EX_WITH_SEND;
    return ibv_create_qp_ex(bench.device.context, &more);
  }
  Qp qp;
  ibv_qp_ex* ex;
};

}  // namespace

const std::vector<Mistake> kMistakesInPosting{
    {"a send flag that is none",
     "EINVAL",
     {"ibv_post_send qp {a}: EINVAL, send_flags has bits that mean nothing"},
     [](Bench& bench) { return Bench::errno_name(bench.a.post_send(1, {}, 1u << 15)); }},
    {"a send before the queue pair is in RTS",
     "EINVAL",
     {"ibv_post_send qp {qp}: EINVAL, the queue pair is in INIT; sends may be posted in RTS"},
     [](Bench& bench) {
       Qp qp(bench.device, attr_of(bench));
       bench.names.add("qp", qp.qp->qp_num);
       REQUIRE(qp.to_init() == 0);
       return Bench::errno_name(qp.post_send(1, {}));
     }},
    {"a receive in RESET",
     "EINVAL",
     {"ibv_post_recv qp {qp}: EINVAL, the queue pair is in RESET; receives may be posted from INIT on"},
     [](Bench& bench) {
       Qp qp(bench.device, attr_of(bench));
       bench.names.add("qp", qp.qp->qp_num);
       return Bench::errno_name(qp.post_recv(1, {}));
     }},
    {"an opcode that is none",
     "EINVAL",
     {"ibv_post_send qp {a}: EINVAL, opcode 99 is not supported"},
     [](Bench& bench) {
       ibv_sge sge = bench.memory.sge(0, 8);
       return post(bench.a, send_of(sge, 1, static_cast<ibv_wr_opcode>(99)));
     }},
    {"a read by an unreliable connection",
     "EINVAL",
     {"ibv_post_send qp {qp}: EINVAL, RDMA_READ is not an operation of unreliable connections, which send and write "
      "and "
      "bind windows"},
     [](Bench& bench) {
       Qp qp(bench.device, attr_of(bench, IBV_QPT_UC));
       bench.names.add("qp", qp.qp->qp_num);
       connect(qp, bench.b.qp->qp_num, {.access = 0});
       ibv_sge sge = bench.memory.sge(0, 8);
       return post(qp, send_of(sge, 1, IBV_WR_RDMA_READ));
     }},
    {"a write by datagram",
     "EINVAL",
     {"ibv_post_send qp {qp}: EINVAL, RDMA_WRITE is not an operation of unreliable datagrams, which only send"},
     [](Bench& bench) {
       Qp qp(bench.device, attr_of(bench, IBV_QPT_UD));
       bench.names.add("qp", qp.qp->qp_num);
       start_datagrams(qp);
       ibv_ah* const ah = make_ah(bench.device, 0);
       ibv_sge sge = bench.memory.sge(0, 8);
       ibv_send_wr wr = send_of(sge, 1, IBV_WR_RDMA_WRITE);
       wr.wr.ud.ah = ah;
       const std::string answer = post(qp, wr);
       REQUIRE(ibv_destroy_ah(ah) == 0);
       return answer;
     }},
    {"a datagram without an address handle",
     "EINVAL",
     {"ibv_post_send qp {qp}: EINVAL, a datagram needs an address handle: wr.ud.ah is null"},
     [](Bench& bench) {
       Qp qp(bench.device, attr_of(bench, IBV_QPT_UD));
       bench.names.add("qp", qp.qp->qp_num);
       start_datagrams(qp);
       ibv_sge sge = bench.memory.sge(0, 8);
       return post(qp, send_of(sge));
     }},
    {"too many SGEs in a send",
     "ENOMEM",
     {"ibv_post_send qp {a}: ENOMEM, num_sge is 5, a list of this queue has at most 4 entries"},
     [](Bench& bench) {
       return Bench::errno_name(
           bench.a.post_send(1, std::vector<ibv_sge>(kTooMany, bench.memory.sge(0, 8)), IBV_SEND_SIGNALED));
     }},
    {"too many SGEs in a send that is built",
     "ENOMEM",
     {"ibv_wr_complete qp {qp}: ENOMEM, the list has 5 SGEs, the queue pair takes 4 (max_send_sge)"},
     [](Bench& bench) {
       WithBuilder built(bench);
       const std::vector<ibv_sge> list(kTooMany, bench.memory.sge(0, 8));
       ibv_wr_start(built.ex);
       ibv_wr_send(built.ex);
       ibv_wr_set_sge_list(built.ex, list.size(), list.data());
       return Bench::errno_name(ibv_wr_complete(built.ex));
     }},
    {"ibv_wr_start twice, and ibv_wr_complete twice",
     "EINVAL, EINVAL",
     {"ibv_wr_complete qp {qp}: EINVAL, ibv_wr_start was called again before ibv_wr_complete or ibv_wr_abort; nothing "
      "is "
      "posted",
      "ibv_wr_complete qp {qp}: EINVAL, there is nothing to complete: ibv_wr_start comes first"},
     [](Bench& bench) {
       WithBuilder built(bench);
       ibv_wr_start(built.ex);
       ibv_wr_send(built.ex);
       ibv_wr_start(built.ex);
       ibv_wr_send(built.ex);
       const std::string first = Bench::errno_name(ibv_wr_complete(built.ex));
       return first + ", " + Bench::errno_name(ibv_wr_complete(built.ex));
     }},
    {"too many SGEs in a receive",
     "EINVAL",
     {"ibv_post_recv qp {a}: EINVAL, num_sge is 5, a list of this queue has at most 4 entries"},
     [](Bench& bench) {
       return Bench::errno_name(bench.a.post_recv(1, std::vector<ibv_sge>(kTooMany, bench.memory.sge(0, 8))));
     }},
    {"too many SGEs in a receive of an SRQ",
     "EINVAL",
     {"ibv_post_srq_recv: EINVAL, num_sge is 5, a list of this queue has at most 4 entries"},
     [](Bench& bench) { return WithSrq(bench).post(std::vector<ibv_sge>(kTooMany, bench.memory.sge(0, 8))); }},
    {"a negative number of SGEs",
     "EINVAL",
     {"ibv_post_send qp {a}: EINVAL, num_sge is -1, a list of this queue has at most 4 entries"},
     [](Bench& bench) {
       ibv_sge sge = bench.memory.sge(0, 8);
       return post(bench.a, send_of(sge, -1));
     }},
    {"inline data longer than max_inline_data",
     "ENOMEM",
     {"ibv_post_send qp {a}: ENOMEM, 65 bytes of inline data, the queue pair takes 64 (max_inline_data)"},
     [](Bench& bench) { return Bench::errno_name(bench.a.post_send(1, {bench.memory.sge(0, 65)}, IBV_SEND_INLINE)); }},
    {"inline data longer than it can ever be",
     "ENOMEM",
     {"ibv_post_send qp {a}: ENOMEM, inline data is longer than max_inline_data can be, which is 1024 bytes"},
     [](Bench& bench) {
       return Bench::errno_name(bench.a.post_send(1, {bench.memory.sge(0, 5000)}, IBV_SEND_INLINE));
     }},
    {"a read into inline data",
     "EINVAL",
     {"ibv_post_send qp {a}: EINVAL, what brings data back cannot be inline"},
     [](Bench& bench) {
       ibv_sge sge = bench.memory.sge(0, 8);
       ibv_send_wr wr = send_of(sge, 1, IBV_WR_RDMA_READ);
       wr.send_flags = IBV_SEND_INLINE;
       return post(bench.a, wr);
     }},
    {"a send queue full of signalled requests",
     "ENOMEM",
     {"ibv_post_send qp {a}: ENOMEM, no room in the send queue: it holds 4 work requests, 0 of them unsignalled; "
      "poll the completion of a signalled one to make room"},
     [](Bench& bench) { return fill(bench.a, {}, IBV_SEND_SIGNALED); }},
    {"a send queue full of unsignalled requests",
     "ENOMEM",
     {"ibv_post_send qp {a}: ENOMEM, no room in the send queue: it holds 4 work requests, 4 of them unsignalled; "
      "room comes back only when the completion of a signalled one is polled, so this queue stays full"},
     [](Bench& bench) { return fill(bench.a, {}, 0); }},
    {"a receive queue that is full",
     "ENOMEM",
     {"ibv_post_recv qp {a}: ENOMEM, no room: all 4 work requests of the queue are posted, or completed and not "
      "polled yet"},
     [](Bench& bench) {
       int answer = 0;
       while (answer == 0) answer = bench.a.post_recv(1, {});
       return Bench::errno_name(answer);
     }},
    {"an SRQ that is full",
     "ENOMEM",
     {"ibv_post_srq_recv: ENOMEM, no room: all 2 work requests of the queue are posted, or completed and not polled "
      "yet"},
     [](Bench& bench) {
       WithSrq with(bench);
       std::string answer = with.post({});
       for (int i = 0; i < 100 && answer == "accepted"; ++i) answer = with.post({});
       return answer;
     }},
    {"a receive posted to a queue pair that has an SRQ",
     "ENOMEM",
     {"ibv_post_recv qp {qp}: ENOMEM, this queue pair receives from an SRQ; post there (ibv_post_srq_recv)"},
     [](Bench& bench) {
       const WithSrq with(bench);
       ibv_qp_init_attr attr = attr_of(bench);
       attr.srq = with.srq;
       Qp qp(bench.device, attr);
       bench.names.add("qp", qp.qp->qp_num);
       connect(qp, bench.b.qp->qp_num, {});
       return Bench::errno_name(qp.post_recv(1, {}));
     }},
    {"a list before any request was begun",
     "EINVAL",
     {"ibv_wr_complete qp {qp}: EINVAL, a setter was called before any work request was begun"},
     [](Bench& bench) {
       WithBuilder built(bench);
       ibv_wr_start(built.ex);
       ibv_wr_set_sge(built.ex, 1, 2, 3);
       return Bench::errno_name(ibv_wr_complete(built.ex));
     }},
};

}  // namespace nicless::test
