// SPDX-License-Identifier: MIT
// Extended reliable connections: domains, targets, initiators and the SRQs that packets name.
#include <cerrno>
#include <optional>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

// A domain with a target and an initiator that are connected to each other.
struct Extended {
  explicit Extended(Bench& the_bench) : bench(the_bench) {
    ibv_xrcd_init_attr attr{IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, 0};
    xrcd = ibv_open_xrcd(bench.device.context, &attr);
    REQUIRE(xrcd != nullptr);
    target.emplace(bench.device, create_target(xrcd));
    ibv_qp_init_attr plain = attr_of(bench, IBV_QPT_XRC_SEND);
    initiator.emplace(bench.device, plain);
    initiator->connect(*target);
    target->connect(*initiator);
    bench.names.add("target", target->qp->qp_num);
    bench.names.add("initiator", initiator->qp->qp_num);
  }
  ~Extended() {
    initiator.reset();
    target.reset();
    CHECK(ibv_close_xrcd(xrcd) == 0);
  }
  Extended(const Extended&) = delete;
  Extended& operator=(const Extended&) = delete;

  ibv_qp* create_target(ibv_xrcd* of) {
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = of;
    return ibv_create_qp_ex(bench.device.context, &attr);
  }

  Bench& bench;
  ibv_xrcd* xrcd = nullptr;
  std::optional<Qp> target;
  std::optional<Qp> initiator;
};

std::string create_srq(Bench& bench, ibv_srq_type type) {
  ibv_srq_init_attr_ex attr{};
  attr.attr = {4, 1, 0};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = type;
  attr.pd = bench.device.pd;
  attr.cq = bench.recv_cq.cq;
  return Bench::refusal(ibv_create_srq_ex(bench.device.context, &attr));
}

}  // namespace

const std::vector<Mistake> kMistakesWithXrc{
    {"an XRC domain closed before what belongs to it",
     "EBUSY",
     {"ibv_close_xrcd: EBUSY, still in use, SRQs and queue pairs that belong to it: 1"},
     [](Bench& bench) { return Bench::errno_name(ibv_close_xrcd(Extended(bench).xrcd)); }},
    {"an XRC SRQ without a domain",
     "EINVAL",
     {"ibv_create_srq_ex: EINVAL, an XRC SRQ needs an xrcd and a cq: comp_mask must have IBV_SRQ_INIT_ATTR_XRCD and "
      "IBV_SRQ_INIT_ATTR_CQ"},
     [](Bench& bench) { return create_srq(bench, IBV_SRQT_XRC); }},
    {"an SRQ with tag matching",
     "EOPNOTSUPP",
     {"ibv_create_srq_ex: EOPNOTSUPP, an SRQ of type IBV_SRQT_TM is hardware's tag matching, which is not offered "
      "here"},
     [](Bench& bench) { return create_srq(bench, IBV_SRQT_TM); }},
    {"an XRC target without a domain",
     "EINVAL",
     {"ibv_create_qp_ex: EINVAL, an XRC target needs an xrcd: comp_mask must have IBV_QP_INIT_ATTR_XRCD"},
     [](Bench& bench) { return Bench::refusal(Extended(bench).create_target(nullptr)); }},
    {"an XRC target of another process opened",
     "EINVAL",
     {"ibv_open_qp: EINVAL, this process has no IBV_QPT_XRC_RECV queue pair 1 in the XRC domain, and those of other "
      "processes are theirs alone"},
     [](Bench& bench) {
       const Extended pair(bench);
       ibv_qp_open_attr attr{};
       attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
       attr.qp_num = 1;
       attr.xrcd = pair.xrcd;
       attr.qp_type = IBV_QPT_XRC_RECV;
       return Bench::refusal(ibv_open_qp(bench.device.context, &attr));
     }},
    {"a receive posted to an XRC target",
     "ENOMEM",
     {"ibv_post_recv qp {target}: ENOMEM, an XRC queue pair takes no receives; post to an SRQ of its domain "
      "(ibv_post_srq_recv)"},
     [](Bench& bench) { return Bench::errno_name(Extended(bench).target->post_recv(1, {})); }},
    {"a send posted to an XRC target",
     "ENOMEM",
     {"ibv_post_send qp {target}: ENOMEM, an XRC target (IBV_QPT_XRC_RECV) only receives; post on one of type "
      "IBV_QPT_XRC_SEND"},
     [](Bench& bench) { return Bench::errno_name(Extended(bench).target->post_send(1, {})); }},
    {"an SRQ number left out, or none of the peer's",
     "send REM_INV_REQ_ERR",
     {"qp {initiator} send wr_id 0x1: the peer refused the request as invalid (remote_srqn 0x0 is none of its XRC "
      "domain's SRQs, the message is too long for the receive posted there, or its queue pair does not take the "
      "operation)",
      "qp {target} received XRC_SEND_ONLY for SRQ 0x0, which is none of this XRC domain's; the sender gets "
      "REM_INV_REQ_ERR"},
     [](Bench& bench) {
       Extended pair(bench);
       REQUIRE(pair.initiator->post_send(1, {}) == 0);
       return bench.completions(1, 0);
     }},
};

}  // namespace nicless::test
