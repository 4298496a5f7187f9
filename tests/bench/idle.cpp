// SPDX-License-Identifier: MIT
// A program with an open device that waits: what do its threads and its memory cost? tests/bench/run looks at it from
// outside.
//
//   nicless run -- idle [QUEUE_PAIRS]
//
// Makes so many RC queue pairs of depth 16 (none: the device alone), connects each two to each other, lets each send
// one message of 64 bytes and receive one, arms the completion channel, prints
//
//     resident_bytes_per_queue_pair N     (what the second half of them added to the resident memory)
//     idle
//
// and waits for a signal to end it.
#include <infiniband/verbs.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "tests/bench/loopback.h"

namespace nicless::bench {
namespace {

constexpr std::uint32_t kDepth = 16;
constexpr std::size_t kMessageBytes = 64;
constexpr std::uint8_t kPort = 1;

struct Verbs {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_gid gid{};
  std::array<char, 2 * kMessageBytes> buffer{};
};

void open(Verbs& verbs, int queue_pairs) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  check(list != nullptr && list[0] != nullptr, "ibv_get_device_list");
  verbs.context = ibv_open_device(list[0]);
  check(verbs.context != nullptr, "ibv_open_device");
  ibv_free_device_list(list);
  if (queue_pairs == 0) return;
  verbs.pd = ibv_alloc_pd(verbs.context);
  verbs.channel = ibv_create_comp_channel(verbs.context);
  check(verbs.pd != nullptr && verbs.channel != nullptr, "ibv_alloc_pd, ibv_create_comp_channel");
  verbs.cq = ibv_create_cq(verbs.context, static_cast<int>(2 * kDepth), nullptr, verbs.channel, 0);
  verbs.mr = ibv_reg_mr(verbs.pd, verbs.buffer.data(), verbs.buffer.size(), IBV_ACCESS_LOCAL_WRITE);
  check(verbs.cq != nullptr && verbs.mr != nullptr, "ibv_create_cq, ibv_reg_mr");
  check(ibv_query_gid(verbs.context, kPort, 0, &verbs.gid) == 0, "ibv_query_gid");
}

ibv_qp* make_queue_pair(Verbs& verbs) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = verbs.cq;
  init.cap = {kDepth, kDepth, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = ibv_create_qp(verbs.pd, &init);
  check(qp != nullptr, "ibv_create_qp");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  check(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
        "ibv_modify_qp to INIT");
  return qp;
}

void connect_queue_pair(Verbs& verbs, ibv_qp* qp, std::uint32_t peer) {
  ibv_qp_attr to_rtr{};
  to_rtr.qp_state = IBV_QPS_RTR;
  to_rtr.path_mtu = IBV_MTU_1024;
  to_rtr.dest_qp_num = peer;
  to_rtr.max_dest_rd_atomic = 1;
  to_rtr.min_rnr_timer = 12;
  to_rtr.ah_attr.is_global = 1;
  to_rtr.ah_attr.grh.dgid = verbs.gid;
  to_rtr.ah_attr.grh.hop_limit = 64;
  to_rtr.ah_attr.port_num = kPort;
  check(ibv_modify_qp(qp, &to_rtr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
        "ibv_modify_qp to RTR");
  ibv_qp_attr to_rts{};
  to_rts.qp_state = IBV_QPS_RTS;
  to_rts.timeout = 14;
  to_rts.retry_cnt = to_rts.rnr_retry = 7;
  to_rts.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &to_rts,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0,
        "ibv_modify_qp to RTS");
}

void send_one(Verbs& verbs, ibv_qp* from, ibv_qp* to) {
  const auto address = reinterpret_cast<std::uintptr_t>(verbs.buffer.data());
  ibv_sge out{address, kMessageBytes, verbs.mr->lkey};
  ibv_sge in{address + kMessageBytes, kMessageBytes, verbs.mr->lkey};
  ibv_recv_wr receive{};
  receive.sg_list = &in;
  receive.num_sge = 1;
  ibv_send_wr send{};
  send.sg_list = &out;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad_send = nullptr;
  check(ibv_post_recv(to, &receive, &bad_receive) == 0, "ibv_post_recv");
  check(ibv_post_send(from, &send, &bad_send) == 0, "ibv_post_send");
  for (int completions = 0; completions < 2;) {
    ibv_wc wc{};
    const int count = ibv_poll_cq(verbs.cq, 1, &wc);
    check(count >= 0 && (count == 0 || wc.status == IBV_WC_SUCCESS), "ibv_poll_cq");
    completions += count;
  }
}

std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  check(file != nullptr, "/proc/self/statm");
  std::size_t pages_in_all = 0;
  std::size_t resident_pages = 0;
  check(std::fscanf(file, "%zu %zu", &pages_in_all, &resident_pages) == 2, "/proc/self/statm");
  std::fclose(file);
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void run(int queue_pairs) {
  Verbs verbs;
  open(verbs, queue_pairs);
  std::size_t half_way = resident_bytes();
  for (int made = 0; made < queue_pairs; made += 2) {
    if (made == queue_pairs / 2 / 2 * 2) half_way = resident_bytes();
    ibv_qp* const a = make_queue_pair(verbs);
    ibv_qp* const b = make_queue_pair(verbs);
    connect_queue_pair(verbs, a, b->qp_num);
    connect_queue_pair(verbs, b, a->qp_num);
    send_one(verbs, a, b);
    send_one(verbs, b, a);
  }
  if (queue_pairs > 0) {
    check(ibv_req_notify_cq(verbs.cq, 0) == 0, "ibv_req_notify_cq");
    const auto counted = static_cast<std::size_t>(queue_pairs - queue_pairs / 2 / 2 * 2);
    std::printf("resident_bytes_per_queue_pair %zu\n", (resident_bytes() - half_way) / counted);
  }
  std::printf("idle\n");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "idle [QUEUE_PAIRS]");
  const int queue_pairs = arguments.number(0);
  arguments.expect_no_more();
  nicless::bench::run(queue_pairs / 2 * 2);
}
