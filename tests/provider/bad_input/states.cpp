// SPDX-License-Identifier: MIT
// ibv_modify_qp: transitions, masks and values.
#include <cerrno>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

// A queue pair in RESET, INIT or RTR, and attributes that lead on from there.
struct Modified {
  Modified(Bench& bench, ibv_qp_state from) : qp(bench.device, attr_of(bench)) {
    bench.names.add("qp", qp.qp->qp_num);
    attr.port_num = 1;
    attr.path_mtu = IBV_MTU_1024;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    REQUIRE(ibv_query_gid(bench.device.context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
    attr.min_rnr_timer = 1;
    if (from >= IBV_QPS_INIT) REQUIRE(to(IBV_QPS_INIT, kInitMask) == 0);
    if (from >= IBV_QPS_RTR) REQUIRE(to(IBV_QPS_RTR, kRtrMask) == 0);
  }
  int to(ibv_qp_state state, int mask) {
    attr.qp_state = state;
    return ibv_modify_qp(qp.qp, &attr, mask);
  }
  Qp qp;
  ibv_qp_attr attr{};
};

// With one attribute changed by `change`.
template <typename Change>
std::string to_init(Bench& bench, Change change, int mask = kInitMask) {
  Modified modified(bench, IBV_QPS_RESET);
  change(modified.attr);
  return Bench::errno_name(modified.to(IBV_QPS_INIT, mask));
}

template <typename Change>
std::string to_rtr(Bench& bench, Change change, int mask = kRtrMask) {
  Modified modified(bench, IBV_QPS_INIT);
  change(modified.attr);
  return Bench::errno_name(modified.to(IBV_QPS_RTR, mask));
}

template <typename Change>
std::string to_rts(Bench& bench, Change change) {
  Modified modified(bench, IBV_QPS_RTR);
  change(modified.attr);
  return Bench::errno_name(modified.to(IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void nothing(ibv_qp_attr&) {}

}  // namespace

const std::vector<Mistake> kMistakesWithStates{
    {"a state left out",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, RESET->RTR is not a transition, go through INIT"},
     [](Bench& bench) { return Bench::errno_name(Modified(bench, IBV_QPS_RESET).to(IBV_QPS_RTR, kRtrMask)); }},
    {"a state that is none",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, qp_state is 99, no value of enum ibv_qp_state"},
     [](Bench& bench) {
       return Bench::errno_name(Modified(bench, IBV_QPS_RESET).to(static_cast<ibv_qp_state>(99), IBV_QP_STATE));
     }},
    {"an attribute missing in the mask",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, INIT->RTR: missing IBV_QP_MIN_RNR_TIMER"},
     [](Bench& bench) { return to_rtr(bench, nothing, kRtrMask & ~IBV_QP_MIN_RNR_TIMER); }},
    {"an attribute that the transition does not take",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, RESET->INIT: does not take IBV_QP_DEST_QPN"},
     [](Bench& bench) { return to_init(bench, nothing, kInitMask | IBV_QP_DEST_QPN); }},
    {"a current state that it is not in",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, cur_qp_state says RTS, but the queue pair is in INIT"},
     [](Bench& bench) {
       Modified modified(bench, IBV_QPS_INIT);
       modified.attr.cur_qp_state = IBV_QPS_RTS;
       return Bench::errno_name(modified.to(IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_CUR_STATE));
     }},
    {"a port that is not there",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, port_num is 2, the device has port 1 only"},
     [](Bench& bench) { return to_init(bench, [](ibv_qp_attr& attr) { attr.port_num = 2; }); }},
    {"a P_Key that is not there",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, pkey_index is 5, the P_Key table has index 0 only"},
     [](Bench& bench) { return to_init(bench, [](ibv_qp_attr& attr) { attr.pkey_index = 5; }); }},
    {"a path MTU that is none",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, path_mtu is no value of enum ibv_mtu"},
     [](Bench& bench) { return to_rtr(bench, [](ibv_qp_attr& attr) { attr.path_mtu = static_cast<ibv_mtu>(9); }); }},
    {"an address without a GID",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, ah_attr.is_global must be 1: RoCE addresses are GIDs (a program's -g option; "
      "without one, nicless run --lids)"},
     [](Bench& bench) { return to_rtr(bench, [](ibv_qp_attr& attr) { attr.ah_attr.is_global = 0; }); }},
    {"a GID of this device that is not there",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, there is no address at sgid_index 200; `nicless devices` lists them"},
     [](Bench& bench) { return to_rtr(bench, [](ibv_qp_attr& attr) { attr.ah_attr.grh.sgid_index = 200; }); }},
    {"more reads and atomics as responder than max_qp_rd_atom",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, max_dest_rd_atomic is 200, the largest value is 16"},
     [](Bench& bench) { return to_rtr(bench, [](ibv_qp_attr& attr) { attr.max_dest_rd_atomic = 200; }); }},
    {"more reads and atomics as requester than max_qp_init_rd_atom",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, max_rd_atomic is 200, the largest value is 16"},
     [](Bench& bench) { return to_rts(bench, [](ibv_qp_attr& attr) { attr.max_rd_atomic = 200; }); }},
    {"a retry count of more than 3 bits",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, retry_cnt is 8, the largest value is 7"},
     [](Bench& bench) { return to_rts(bench, [](ibv_qp_attr& attr) { attr.retry_cnt = 8; }); }},
    {"an RNR retry count of more than 3 bits",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, rnr_retry is 8, the largest value is 7"},
     [](Bench& bench) { return to_rts(bench, [](ibv_qp_attr& attr) { attr.rnr_retry = 8; }); }},
    {"an ack timeout of more than 5 bits",
     "EINVAL",
     {"ibv_modify_qp qp {qp}: EINVAL, timeout is 32, the largest value is 31"},
     [](Bench& bench) { return to_rts(bench, [](ibv_qp_attr& attr) { attr.timeout = 32; }); }},
};

}  // namespace nicless::test
