// SPDX-License-Identifier: MIT
// Goal: many threads may use verbs at once: posting, polling, registering, making and destroying queue pairs, over two
// contexts and shared CQs. A program for ThreadSanitizer; without it, it still checks that every message arrives.
// Method: each of several lanes is a pair of connected queue pairs with a sending and a receiving thread. All lanes
// share two CQ sets in turn, and two more threads make and destroy queue pairs and XRC SRQs meanwhile. Exit status 0:
// all as it should be.
#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr int kLanes = 4;
constexpr int kMessages = 500;
constexpr std::uint32_t kBytes = 3000;
constexpr int kDepth = 16;

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "threads: %s\n", what);
  std::abort();
}

struct Side {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;  // of all this side's queue pairs

  Side() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    check(count > 0, "no device");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 4096, nullptr, nullptr, 0);
    check(pd != nullptr && cq != nullptr, "no PD or CQ");
  }
  ~Side() {
    check(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0, "a side stays busy");
  }
};

// To a queue pair of this process; an end of XRC takes of it what it has.
void connect_to(ibv_context* context, ibv_qp* qp, std::uint32_t peer_qpn) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer_qpn;
  attr.min_rnr_timer = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.hop_limit = 64;
  check(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "GID");
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 16;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "RTS");
}

struct End {
  End(Side& the_side) : side(the_side), bytes(kBytes * kDepth) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = side.cq;
    attr.cap = {kDepth, kDepth, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(side.pd, &attr);
    const int access = IBV_ACCESS_LOCAL_WRITE;
    mr = ibv_reg_mr(side.pd, bytes.data(), bytes.size(), access);
    check(qp != nullptr && mr != nullptr, "no QP or MR");
  }
  ~End() { check(ibv_destroy_qp(qp) == 0 && ibv_dereg_mr(mr) == 0, "an end stays busy"); }

  void connect(const End& peer) const { connect_to(side.context, qp, peer.qp->qp_num); }

  void post_recv(int slot) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&bytes[static_cast<std::size_t>(slot) * kBytes]), kBytes, mr->lkey};
    ibv_recv_wr wr{};
    wr.wr_id = reinterpret_cast<std::uint64_t>(this);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(qp, &wr, &bad) == 0, "post_recv");
  }
  bool post_send(int slot) {
    ibv_sge sge{reinterpret_cast<std::uint64_t>(&bytes[static_cast<std::size_t>(slot) * kBytes]), kBytes, mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = reinterpret_cast<std::uint64_t>(this);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad) == 0;
  }

  Side& side;
  std::vector<char> bytes;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  std::atomic<int> sent{0};      // completed
  std::atomic<int> received{0};  // completed
};

// Any thread of a side polls for all of them: a completion is counted at the end it names.
void poll(Side& side) {
  ibv_wc wc;
  const int found = ibv_poll_cq(side.cq, 1, &wc);
  check(found >= 0, "poll_cq");
  if (found == 0) return;
  check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  End& end = *reinterpret_cast<End*>(wc.wr_id);
  check(end.qp->qp_num == wc.qp_num, "the completion names another queue pair");
  if (wc.opcode == IBV_WC_RECV) {
    end.post_recv(end.received.fetch_add(1) % kDepth);
  } else {
    ++end.sent;
  }
}

void send_all(End& end) {
  for (int posted = 0; posted < kMessages;) {
    if (posted - end.sent < kDepth / 2 && end.post_send(posted % kDepth)) {
      ++posted;
    } else {
      poll(end.side);
    }
  }
  while (end.sent < kMessages) poll(end.side);
}

void receive_all(End& end) {
  while (end.received < kMessages) poll(end.side);
}

void make_and_destroy(Side& side, const std::atomic<bool>& is_over) {
  while (!is_over) {
    End end(side);
    End peer(side);
    end.connect(peer);
    peer.connect(end);
  }
}

// XRC meanwhile: each message goes to an SRQ that was made for it, and that is destroyed as soon as it is there.
struct XrcLane {
  explicit XrcLane(Side& the_side) : side(the_side), bytes(2 * kBytes) {
    ibv_xrcd_init_attr domain{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};
    xrcd = ibv_open_xrcd(side.context, &domain);
    cq = ibv_create_cq(side.context, kDepth, nullptr, nullptr, 0);
    const int access = IBV_ACCESS_LOCAL_WRITE;
    mr = ibv_reg_mr(side.pd, bytes.data(), bytes.size(), access);
    check(xrcd != nullptr && cq != nullptr && mr != nullptr, "no XRC domain, CQ or MR");
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd;
    target = ibv_create_qp_ex(side.context, &attr);
    ibv_qp_init_attr plain{};
    plain.send_cq = cq;
    plain.cap.max_send_wr = plain.cap.max_send_sge = 1;
    plain.qp_type = IBV_QPT_XRC_SEND;
    initiator = ibv_create_qp(side.pd, &plain);
    check(target != nullptr && initiator != nullptr, "no XRC queue pairs");
    connect_to(side.context, initiator, target->qp_num);
    connect_to(side.context, target, initiator->qp_num);
  }
  ~XrcLane() {
    check(ibv_destroy_qp(initiator) == 0 && ibv_destroy_qp(target) == 0 && ibv_dereg_mr(mr) == 0 &&
              ibv_destroy_cq(cq) == 0 && ibv_close_xrcd(xrcd) == 0,
          "an XRC lane stays busy");
  }

  void send_one() {
    ibv_srq_init_attr_ex attr{};
    attr.attr = {1, 1, 0};
    attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.srq_type = IBV_SRQT_XRC;
    attr.pd = side.pd;
    attr.xrcd = xrcd;
    attr.cq = cq;
    ibv_srq* const srq = ibv_create_srq_ex(side.context, &attr);
    std::uint32_t number = 0;
    check(srq != nullptr && ibv_get_srq_num(srq, &number) == 0, "no XRC SRQ");
    ibv_sge list{reinterpret_cast<std::uint64_t>(bytes.data()), kBytes, mr->lkey};
    ibv_recv_wr receive{1, nullptr, &list, 1};
    ibv_recv_wr* bad_receive = nullptr;
    check(ibv_post_srq_recv(srq, &receive, &bad_receive) == 0, "post_srq_recv");
    list.addr += kBytes;
    ibv_send_wr send{};
    send.sg_list = &list;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    send.send_flags = IBV_SEND_SIGNALED;
    send.qp_type.xrc.remote_srqn = number;
    ibv_send_wr* bad_send = nullptr;
    check(ibv_post_send(initiator, &send, &bad_send) == 0, "post_send to an XRC SRQ");
    for (int completed = 0; completed < 2;) {
      ibv_wc wc;
      const int found = ibv_poll_cq(cq, 1, &wc);
      check(found >= 0 && (found == 0 || wc.status == IBV_WC_SUCCESS), "poll_cq of XRC");
      completed += found;
    }
    check(ibv_destroy_srq(srq) == 0, "an XRC SRQ stays busy");
  }

  Side& side;
  std::vector<char> bytes;
  ibv_xrcd* xrcd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* target = nullptr;
  ibv_qp* initiator = nullptr;
};

void run_xrc(Side& side, const std::atomic<bool>& is_over) {
  XrcLane lane(side);
  while (!is_over) lane.send_one();
}

}  // namespace

int main() {
  Side near;
  Side far;
  {
    std::vector<std::unique_ptr<End>> senders;
    std::vector<std::unique_ptr<End>> receivers;
    std::vector<std::thread> threads;
    for (int lane = 0; lane < kLanes; ++lane) {
      senders.push_back(std::make_unique<End>(near));
      receivers.push_back(std::make_unique<End>(far));
      senders.back()->connect(*receivers.back());
      receivers.back()->connect(*senders.back());
      for (int slot = 0; slot < kDepth; ++slot) receivers.back()->post_recv(slot);
    }
    std::atomic<bool> is_over{false};
    std::thread churn([&] { make_and_destroy(near, is_over); });
    std::thread xrc([&] { run_xrc(far, is_over); });
    for (int lane = 0; lane < kLanes; ++lane) {
      threads.emplace_back([&, lane] { send_all(*senders[static_cast<std::size_t>(lane)]); });
      threads.emplace_back([&, lane] { receive_all(*receivers[static_cast<std::size_t>(lane)]); });
    }
    for (std::thread& thread : threads) thread.join();
    is_over = true;
    churn.join();
    xrc.join();
  }
  std::puts("threads: every message arrived once");
  return 0;
}
