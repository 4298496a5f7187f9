// SPDX-License-Identifier: MIT
// Fixtures for unreliable datagrams over the public verbs API: queue pairs that send and receive them, address handles
// to this machine's own addresses.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "tests/provider/verbs_pair.h"

namespace nicless::test {

inline constexpr std::uint32_t kQkey = 0x11111111;
inline constexpr std::size_t kGrhBytes = 40;

inline ibv_qp_init_attr datagram_attr(Cq& cq) {
  ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
  attr.qp_type = IBV_QPT_UD;
  return attr;
}

inline void start_datagrams(Qp& qp, std::uint32_t qkey = kQkey) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0);
  attr.qp_state = IBV_QPS_RTR;
  REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE) == 0);
  attr.qp_state = IBV_QPS_RTS;
  REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

// To the address at this index of the device's own table, from the same.
inline ibv_ah* make_ah(Device& device, std::uint8_t gid_index) {
  ibv_ah_attr attr{};
  REQUIRE(ibv_query_gid(device.context, 1, gid_index, &attr.grh.dgid) == 0);
  attr.grh.sgid_index = gid_index;
  attr.grh.hop_limit = 1;
  attr.is_global = 1;
  attr.port_num = 1;
  ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
  REQUIRE(ah != nullptr);
  return ah;
}

inline int post_datagram(Qp& qp, ibv_ah* ah, std::uint32_t remote_qpn, ibv_sge sge, std::uint32_t remote_qkey = kQkey,
                         unsigned flags = IBV_SEND_SIGNALED) {
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = remote_qpn;
  wr.wr.ud.remote_qkey = remote_qkey;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp.qp, &wr, &bad);
}

}  // namespace nicless::test
