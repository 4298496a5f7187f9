// SPDX-License-Identifier: MIT
// What the verbs programs of this folder share: a device, and RC queue pairs of depth 16 connected to others on it. Any
// failure ends the program with the name of the call (loopback.h).
#pragma once

#include <infiniband/verbs.h>

#include <vector>

#include "tests/bench/loopback.h"

namespace nicless::bench {

constexpr std::uint32_t kDepth = 16;
constexpr std::uint8_t kPort = 1;

struct Verbs {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_gid gid{};
  ibv_mtu mtu = IBV_MTU_1024;
  std::vector<char> buffer;
};

inline void open_device(Verbs& verbs) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  check(list != nullptr && list[0] != nullptr, "ibv_get_device_list");
  verbs.context = ibv_open_device(list[0]);
  check(verbs.context != nullptr, "ibv_open_device");
  ibv_free_device_list(list);
}

// All that queue pairs need, with a registered buffer and a completion queue for so many.
inline void make_objects(Verbs& verbs, std::size_t buffer_bytes, std::uint32_t completions) {
  verbs.pd = ibv_alloc_pd(verbs.context);
  verbs.channel = ibv_create_comp_channel(verbs.context);
  check(verbs.pd != nullptr && verbs.channel != nullptr, "ibv_alloc_pd, ibv_create_comp_channel");
  verbs.cq = ibv_create_cq(verbs.context, static_cast<int>(completions), nullptr, verbs.channel, 0);
  verbs.buffer.resize(buffer_bytes);
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;  // no enumerator: ibv_reg_mr is a macro that combines it with others
  verbs.mr = ibv_reg_mr(verbs.pd, verbs.buffer.data(), verbs.buffer.size(), kAccess);
  check(verbs.cq != nullptr && verbs.mr != nullptr, "ibv_create_cq, ibv_reg_mr");
  check(ibv_query_gid(verbs.context, kPort, 0, &verbs.gid) == 0, "ibv_query_gid");
  ibv_port_attr port{};
  check(ibv_query_port(verbs.context, kPort, &port) == 0, "ibv_query_port");
  verbs.mtu = port.active_mtu;
}

inline ibv_qp* make_queue_pair(Verbs& verbs) {
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

inline void connect_queue_pair(Verbs& verbs, ibv_qp* qp, const ibv_gid& gid, std::uint32_t peer) {
  ibv_qp_attr to_rtr{};
  to_rtr.qp_state = IBV_QPS_RTR;
  to_rtr.path_mtu = verbs.mtu;
  to_rtr.dest_qp_num = peer;
  to_rtr.max_dest_rd_atomic = 1;
  to_rtr.min_rnr_timer = 12;
  to_rtr.ah_attr.is_global = 1;
  to_rtr.ah_attr.grh.dgid = gid;
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

inline ibv_sge piece(const Verbs& verbs, std::size_t offset, std::size_t bytes) {
  return {reinterpret_cast<std::uintptr_t>(verbs.buffer.data()) + offset, static_cast<std::uint32_t>(bytes),
          verbs.mr->lkey};
}

inline void post_receive(ibv_qp* qp, ibv_sge into, std::uint64_t wr_id) {
  ibv_recv_wr receive{};
  receive.wr_id = wr_id;
  receive.sg_list = &into;
  receive.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  check(ibv_post_recv(qp, &receive, &bad) == 0, "ibv_post_recv");
}

inline void post_send(ibv_qp* qp, ibv_sge from) {
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  check(ibv_post_send(qp, &send, &bad) == 0, "ibv_post_send");
}

// One completion if there is one; one in error ends the program.
inline bool poll_one(const Verbs& verbs, ibv_wc& wc) {
  const int count = ibv_poll_cq(verbs.cq, 1, &wc);
  check(count >= 0, "ibv_poll_cq");
  if (count > 0 && wc.status != IBV_WC_SUCCESS) {
    std::fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
    std::exit(1);
  }
  return count > 0;
}

}  // namespace nicless::bench
