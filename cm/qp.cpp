// SPDX-License-Identifier: MIT
#include "cm/qp.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cm/agent.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

void destroy_queue(ibv_cq*& cq, ibv_comp_channel*& channel) {
  if (cq != nullptr) ibv_destroy_cq(std::exchange(cq, nullptr));
  if (channel != nullptr) ibv_destroy_comp_channel(std::exchange(channel, nullptr));
}

// Only those that the library made stand in the id. The CQ of an XRC id is its SRQ's.
void destroy_queues(CmId& id) {
  if (id.qp_type == IBV_QPT_XRC_RECV && id.srq != nullptr) return;
  destroy_queue(id.recv_cq, id.recv_cq_channel);
  destroy_queue(id.send_cq, id.send_cq_channel);
}

Result<void> create_queue(CmId& id, std::uint32_t entries, ibv_cq*& cq, ibv_comp_channel*& channel) {
  channel = ibv_create_comp_channel(id.verbs);
  if (channel == nullptr) return queue::error(errno, "there is no room for a completion channel");
  cq = ibv_create_cq(id.verbs, static_cast<int>(entries), &id, channel, 0);
  if (cq == nullptr) return queue::error(errno, "no completion queue of " + std::to_string(entries) + " entries");
  return {};
}

// Completion queues for those that the program left out. None where there is nothing to complete.
Result<void> create_queues(CmId& id, ibv_qp_init_attr_ex& attr) {
  if (attr.qp_type == IBV_QPT_XRC_RECV) return {};  // what it receives is its SRQ's
  if (attr.recv_cq == nullptr && id.recv_cq == nullptr && attr.cap.max_recv_wr > 0)
    if (auto made = create_queue(id, attr.cap.max_recv_wr, id.recv_cq, id.recv_cq_channel); !made) return made;
  if (attr.send_cq == nullptr && id.send_cq == nullptr && attr.cap.max_send_wr > 0)
    if (auto made = create_queue(id, attr.cap.max_send_wr, id.send_cq, id.send_cq_channel); !made) return made;
  if (attr.send_cq == nullptr) attr.send_cq = id.send_cq;
  if (attr.recv_cq == nullptr) attr.recv_cq = id.recv_cq;
  return {};
}

Result<void> modify(ibv_qp* qp, ibv_qp_attr& attr, int mask, const char* to) {
  if (int e = ibv_modify_qp(qp, &attr, mask))
    return queue::error(e, std::string("the queue pair does not go to ") + to);
  return {};
}

Result<void> fill(CmId& id, ibv_qp_state state, ibv_qp_attr& attr, int& mask) {
  attr = {};
  attr.qp_state = state;
  const auto filled = init_qp_attr(id, attr);
  if (!filled) return filled.error();
  mask = *filled;
  return {};
}

Result<void> initialise(CmId& id, ibv_qp* qp) {
  ibv_qp_attr attr{};
  int mask = 0;
  if (auto filled = fill(id, IBV_QPS_INIT, attr, mask); !filled) return filled;
  if (auto moved = modify(qp, attr, mask, "INIT"); !moved) return moved;
  if (id.qp_type != IBV_QPT_UD) return {};
  attr.qp_state = IBV_QPS_RTR;
  if (auto moved = modify(qp, attr, IBV_QP_STATE, "RTR"); !moved) return moved;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = 0;
  return modify(qp, attr, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
}

Result<void> check_qp(const CmId& id, const ibv_qp_init_attr_ex& attr) {
  if (id.qp != nullptr) return queue::error(EINVAL, "the id has a queue pair already");
  if (id.verbs == nullptr) return queue::error(EINVAL, "the id is not bound to a device");
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && attr.pd != nullptr && attr.pd->context != id.verbs)
    return queue::error(EINVAL, "the protection domain belongs to another device context than the id's verbs");
  if ((id.recv_cq != nullptr && attr.recv_cq != nullptr && id.recv_cq != attr.recv_cq) ||
      (id.send_cq != nullptr && attr.send_cq != nullptr && id.send_cq != attr.send_cq))
    return queue::error(EINVAL, "the id has other completion queues already");
  return {};
}

// The domain that all ids of the device share.
Result<ibv_xrcd*> xrcd_of(const CmId& id) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.device->xrcd == nullptr) {
    ibv_xrcd_init_attr attr{};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    attr.oflags = O_CREAT;
    id.device->xrcd = ibv_open_xrcd(id.verbs, &attr);
    if (id.device->xrcd == nullptr) return queue::error(errno, "there is no room for an XRC domain");
  }
  return id.device->xrcd;
}

// What an XRC target or SRQ needs and the program left out.
template <typename Attr>
Result<void> add_xrcd(const CmId& id, Attr& attr, std::uint32_t has_xrcd) {
  if ((attr.comp_mask & has_xrcd) != 0 && attr.xrcd != nullptr) return {};
  const auto xrcd = xrcd_of(id);
  if (!xrcd) return xrcd.error();
  attr.xrcd = *xrcd;
  attr.comp_mask |= has_xrcd;
  return {};
}

Result<void> complete_xrc_srq(CmId& id, ibv_srq_init_attr_ex& attr) {
  if (auto added = add_xrcd(id, attr, IBV_SRQ_INIT_ATTR_XRCD); !added) return added;
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_CQ) != 0 && attr.cq != nullptr) return {};
  if (id.recv_cq == nullptr)
    if (auto made = create_queue(id, attr.attr.max_wr, id.recv_cq, id.recv_cq_channel); !made) return made;
  attr.cq = id.recv_cq;
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
  return {};
}

int fill_unconnected(const CmId& id, ibv_qp_attr& attr) {
  attr.port_num = id.port_num;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (id.qp_type == IBV_QPT_UD) {
    attr.qkey = RDMA_UDP_QKEY;
    mask |= IBV_QP_QKEY;
  } else {
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  return mask;
}

int fill_init(const CmId& id, const Agreement& agreed, ibv_qp_attr& attr) {
  attr.port_num = id.port_num;
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (agreed.responder_resources > 0) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

int fill_rtr(const CmId& id, const Agreement& agreed, ibv_qp_attr& attr) {
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = id.port_num;
  wire::to_raw(id.remote.address, attr.ah_attr.grh.dgid.raw);
  attr.ah_attr.grh.sgid_index = id.place.index;
  attr.ah_attr.grh.hop_limit = agreed.hop_limit;
  attr.ah_attr.grh.traffic_class = agreed.traffic_class;
  attr.ah_attr.grh.flow_label = agreed.flow_label;
  attr.path_mtu = static_cast<ibv_mtu>(agreed.path_mtu);
  attr.dest_qp_num = agreed.remote_qpn.value();
  attr.rq_psn = id.starting_psn.value();
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (id.qp_type == IBV_QPT_UC || id.qp_type == IBV_QPT_XRC_SEND) return mask;
  attr.max_dest_rd_atomic = agreed.responder_resources;
  attr.min_rnr_timer = 0;  // 655 ms
  return mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

int fill_rts(const CmId& id, const Agreement& agreed, ibv_qp_attr& attr) {
  attr.sq_psn = agreed.sq_psn.value();
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (id.qp_type == IBV_QPT_UC) return mask;
  attr.timeout = id.ack_timeout.value_or(agreed.ack_timeout);
  if (id.qp_type == IBV_QPT_XRC_RECV) return mask | IBV_QP_TIMEOUT;
  attr.retry_cnt = agreed.retry_count;
  attr.rnr_retry = agreed.rnr_retry_count;
  attr.max_rd_atomic = agreed.initiator_depth;
  return mask | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

}  // namespace

Result<void> create_qp(CmId& id, ibv_qp_init_attr_ex& attr) {
  if (auto ok = check_qp(id, attr); !ok) return ok;
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr.pd == nullptr) attr.pd = id.pd;
  attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
  if (attr.qp_type == IBV_QPT_XRC_RECV) {
    if (auto added = add_xrcd(id, attr, IBV_QP_INIT_ATTR_XRCD); !added) return added;
  } else if (id.srq != nullptr && attr.srq == nullptr) {
    attr.srq = id.srq;
  }
  if (auto made = create_queues(id, attr); !made) {
    destroy_queues(id);
    return made;
  }
  ibv_qp* qp = ibv_create_qp_ex(id.verbs, &attr);
  if (qp == nullptr) {
    const int e = errno;
    destroy_queues(id);
    return queue::error(e, "the queue pair cannot be created");
  }
  if (auto initialised = initialise(id, qp); !initialised) {
    ibv_destroy_qp(qp);
    destroy_queues(id);
    return initialised;
  }
  if (qp->pd != nullptr) id.pd = qp->pd;  // an XRC target has none
  id.qp = qp;
  return {};
}

Result<void> create_qp(CmId& id, ibv_pd* pd, ibv_qp_init_attr& attr) {
  ibv_qp_init_attr_ex extended{};
  std::memcpy(&extended, &attr, sizeof attr);  // the old struct is the beginning of the new one
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = pd;
  auto created = create_qp(id, extended);
  if (created) std::memcpy(&attr, &extended, sizeof attr);
  return created;
}

void destroy_qp(CmId& id) {
  if (id.qp != nullptr) ibv_destroy_qp(std::exchange(id.qp, nullptr));
  destroy_queues(id);
}

Result<void> create_srq(CmId& id, ibv_srq_init_attr_ex& attr) {
  if (id.verbs == nullptr) return queue::error(EINVAL, "the id is not bound to a device");
  if (id.srq != nullptr) return queue::error(EINVAL, "the id has a shared receive queue already");
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) return queue::error(EINVAL, "attr has no srq_type");
  if ((attr.comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr.pd == nullptr) attr.pd = id.pd;
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  if (attr.srq_type == IBV_SRQT_XRC)
    if (auto completed = complete_xrc_srq(id, attr); !completed) return completed;
  ibv_srq* srq = ibv_create_srq_ex(id.verbs, &attr);
  if (srq == nullptr) {
    const int e = errno;
    if (attr.srq_type == IBV_SRQT_XRC) destroy_queues(id);
    return queue::error(e, "the shared receive queue cannot be created");
  }
  if (id.pd == nullptr) id.pd = attr.pd;
  id.srq = srq;
  return {};
}

void destroy_srq(CmId& id) {
  if (id.srq != nullptr) ibv_destroy_srq(std::exchange(id.srq, nullptr));
  if (id.qp == nullptr || id.qp_type == IBV_QPT_XRC_RECV) destroy_queues(id);
}

Result<int> init_qp_attr(CmId& id, ibv_qp_attr& attr) {
  if (id.device == nullptr) return queue::error(EINVAL, "the id is not bound to a device");
  const ibv_qp_state state = attr.qp_state;
  attr = {};
  attr.qp_state = state;
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.connection == nullptr || id.qp_type == IBV_QPT_UD) return fill_unconnected(id, attr);
  if (!id.connection->connection.owes_farewell()) return queue::error(EINVAL, "the connection is over");
  const Agreement agreed = id.connection->connection.agreement();
  if (state == IBV_QPS_INIT) return fill_init(id, agreed, attr);
  if (id.connection->connection.awaits_reply())
    return queue::error(EINVAL, "the peer has not replied yet: its queue pair is not known");
  if (state == IBV_QPS_RTR) return fill_rtr(id, agreed, attr);
  if (state == IBV_QPS_RTS) return fill_rts(id, agreed, attr);
  return queue::error(EINVAL, "only INIT, RTR and RTS come from the connection");
}

Result<void> move_to_rtr(CmId& id, std::uint8_t responder_resources) {
  if (id.qp == nullptr) return {};
  ibv_qp_attr attr{};
  int mask = 0;
  // The access rights follow from what was agreed, which create_qp could not know.
  if (auto filled = fill(id, IBV_QPS_INIT, attr, mask); !filled) return filled;
  if (auto moved = modify(id.qp, attr, mask, "INIT"); !moved) return moved;
  if (auto filled = fill(id, IBV_QPS_RTR, attr, mask); !filled) return filled;
  if (responder_resources != RDMA_MAX_RESP_RES) attr.max_dest_rd_atomic = responder_resources;
  return modify(id.qp, attr, mask, "RTR");
}

Result<void> move_to_rts(CmId& id, std::uint8_t initiator_depth) {
  if (id.qp == nullptr) return {};
  ibv_qp_attr attr{};
  int mask = 0;
  if (auto filled = fill(id, IBV_QPS_RTS, attr, mask); !filled) return filled;
  if (initiator_depth != RDMA_MAX_INIT_DEPTH) attr.max_rd_atomic = initiator_depth;
  return modify(id.qp, attr, mask, "RTS");
}

void move_to_error(CmId& id) {
  if (id.qp == nullptr) return;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(id.qp, &attr, IBV_QP_STATE);
}

}  // namespace nicless::cm
