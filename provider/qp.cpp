// SPDX-License-Identifier: MIT
#include "provider/qp.h"

#include <cerrno>
#include <string>

#include "provider/enum_number.h"
#include "provider/objects.h"
#include "provider/qp_attributes.h"
#include "provider/stop.h"
#include "provider/wr_builder.h"
#include "wire/io/clock.h"
#include "wire/rc/queue_pair.h"
#include "wire/uc/uc_queue_pair.h"
#include "wire/ud/ud_queue_pair.h"

namespace nicless::provider {
namespace {

// Every queue pair takes that much inline data at least: hardware has room in its work requests anyhow, and programs
// rely on it (rdma_xclient sends 16 bytes inline without having asked for any).
constexpr std::uint32_t kInlineGranted = 64;

queue::SendQueue::Limits send_limits(const ibv_qp_init_attr& attr) {
  return {attr.cap.max_send_wr, attr.cap.max_send_sge, attr.cap.max_inline_data, attr.sq_sig_all != 0};
}

Result<void> check_at_most(const char* name, std::uint32_t value, std::uint32_t limit) {
  if (value <= limit) return {};
  return queue::error(EINVAL, std::string("cap.") + name + " is " + std::to_string(value) + ", the device's limit is " +
                                  std::to_string(limit));
}

Result<void> check_type(const ibv_qp_type& type) {
  switch (number_of(type)) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
      return {};
    case IBV_QPT_XRC_RECV:
      return queue::error(EINVAL,
                          "an XRC target needs an XRC domain: ibv_create_qp_ex with IBV_QP_INIT_ATTR_XRCD makes it");
    case IBV_QPT_RAW_PACKET:
    case IBV_QPT_DRIVER:
      return queue::error(EOPNOTSUPP, "only queue pairs of types RC, UC, UD and XRC are supported");
  }
  return queue::error(EINVAL, "qp_type is no value of enum ibv_qp_type");
}

Result<void> check(const ibv_pd* pd, const ibv_qp_init_attr& attr) {
  if (auto type = check_type(attr.qp_type); !type) return type;
  const bool is_initiator = attr.qp_type == IBV_QPT_XRC_SEND;  // which receives nothing
  if (attr.send_cq == nullptr || (attr.recv_cq == nullptr && !is_initiator)) {
    return queue::error(
        EINVAL, is_initiator ? "an XRC initiator needs a send_cq" : "a queue pair needs a send_cq and a recv_cq");
  }
  const ibv_context* const context = pd->context;
  if (attr.send_cq->context != context || (attr.recv_cq != nullptr && attr.recv_cq->context != context) ||
      (attr.srq != nullptr && attr.srq->context != context)) {
    return queue::error(EINVAL, "the PD, the CQs and the SRQ belong to different contexts");
  }
  if (attr.srq != nullptr && srq_of(attr.srq).xrcd) {
    return queue::error(EINVAL, "the SRQ is of type IBV_SRQT_XRC, which XRC targets alone receive from");
  }
  if (auto at_most = check_at_most("max_send_wr", attr.cap.max_send_wr, queue::kQueueDepthMax); !at_most)
    return at_most;
  if (auto at_most = check_at_most("max_send_sge", attr.cap.max_send_sge, queue::kSgeMax); !at_most) return at_most;
  if (auto at_most = check_at_most("max_inline_data", attr.cap.max_inline_data, queue::kInlineBytesMax); !at_most) {
    return at_most;
  }
  if (attr.srq != nullptr) return {};  // then the rest is not looked at
  if (auto at_most = check_at_most("max_recv_wr", attr.cap.max_recv_wr, queue::kQueueDepthMax); !at_most)
    return at_most;
  return check_at_most("max_recv_sge", attr.cap.max_recv_sge, queue::kSgeMax);
}

// What ibv_create_qp_ex takes beyond ibv_create_qp: of known bits that are not ours EOPNOTSUPP, of others EINVAL.
Result<void> check_extended(const ibv_qp_init_attr_ex& attr) {
  constexpr std::uint32_t kTaken = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                                   IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  constexpr std::uint32_t kKnown =
      kTaken | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
  constexpr std::uint32_t kKnownFlags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB | IBV_QP_CREATE_SCATTER_FCS |
                                        IBV_QP_CREATE_CVLAN_STRIPPING | IBV_QP_CREATE_SOURCE_QPN |
                                        IBV_QP_CREATE_PCI_WRITE_END_PADDING;
  if ((attr.comp_mask & ~kKnown) != 0) return queue::error(EINVAL, "comp_mask has unknown bits");
  std::uint32_t taken = kTaken;
  if (number_of(attr.qp_type) == IBV_QPT_XRC_SEND) taken |= IBV_QP_INIT_ATTR_XRCD;  // given and not looked at
  if ((attr.comp_mask & ~taken) != 0) {
    return queue::error(EOPNOTSUPP,
                        "of comp_mask, IND_TABLE and RX_HASH are not supported, and XRCD is for XRC targets");
  }
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && attr.max_tso_header != 0) {
    return queue::error(EOPNOTSUPP, "max_tso_header must be 0: tso_caps of ibv_query_device_ex is, too");
  }
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) == 0) return {};
  if ((attr.create_flags & ~kKnownFlags) != 0) return queue::error(EINVAL, "create_flags has unknown bits");
  if ((attr.create_flags & ~std::uint32_t{IBV_QP_CREATE_BLOCK_SELF_MCAST_LB}) == 0) return {};
  return queue::error(EOPNOTSUPP, "of create_flags, only IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is supported");
}

std::vector<std::string> reasons_of(Qp& qp) {
  queue::MutexLock lock(qp.seat.port->mutex);
  return qp.transport->take_reasons();
}

std::unique_ptr<queue::SendQueue> make_send_queue(const ibv_qp_init_attr& attr, queue::Qpn qpn) {
  if (attr.send_cq == nullptr) return nullptr;
  return std::make_unique<queue::SendQueue>(send_limits(attr), cq_of(attr.send_cq).queue, qpn);
}

std::unique_ptr<queue::ReceiveQueue> make_receive_queue(const ibv_qp_init_attr& attr, queue::Qpn qpn) {
  if (attr.srq != nullptr || attr.recv_cq == nullptr) return nullptr;
  return std::make_unique<queue::ReceiveQueue>(attr.cap.max_recv_wr, attr.cap.max_recv_sge, cq_of(attr.recv_cq).queue,
                                               qpn);
}

queue::ReceiveSource& posted_receives(const Qp& qp) {
  if (qp.srq) return qp.srq->queue;
  return *qp.receive_queue;
}

std::unique_ptr<queue::ReceiveSource> make_denied_receives(const Qp& qp) {
  ProcessFaults& faults = qp.context->runtime.faults();
  if (!faults.has_denials() || !qp.has_receives()) return nullptr;
  return std::make_unique<DeniedReceives>(posted_receives(qp), faults);
}

wire::QpParts parts_of(Qp& qp) {
  wire::QpParts parts;
  parts.qpn = qp.seat.qpn;
  if (qp.pd) parts.pd = qp.pd->id;
  parts.send_queue = qp.send_queue.get();
  parts.own_receives = qp.receive_queue.get();
  if (qp.has_receives()) parts.receives = qp.denied_receives ? qp.denied_receives.get() : &posted_receives(qp);
  if (qp.srq) parts.srq_pd = qp.srq->pd->id;
  if (qp.recv_cq) parts.recv_cq = &qp.recv_cq->queue;
  if (qp.xrc_group) parts.xrc_domain = &qp.xrc_group->domain();
  parts.regions = &qp.context->regions;
  parts.async_events = &qp.context->async_events;
  parts.flight = &qp.seat.port->flight();
  parts.handle = &qp.verbs.qp_base;
  parts.port_mtu = static_cast<std::uint16_t>(device_of(public_context(*qp.context)).mtu_bytes);
  return parts;
}

std::unique_ptr<wire::ProgramQueuePair> make_transport(ibv_qp_type type, const wire::QpParts& parts) {
  if (type == IBV_QPT_UC) return std::make_unique<wire::UcQueuePair>(parts);
  if (type == IBV_QPT_UD) return std::make_unique<wire::UdQueuePair>(parts);
  if (type == IBV_QPT_XRC_SEND) return std::make_unique<wire::RcQueuePair>(parts, wire::Transport::XrcInitiator);
  if (type == IBV_QPT_XRC_RECV) return std::make_unique<wire::RcQueuePair>(parts, wire::Transport::XrcTarget);
  return std::make_unique<wire::RcQueuePair>(parts);
}

Result<void> check_no_attachment(Qp& qp) {
  queue::MutexLock lock(qp.seat.port->mutex);
  if (qp.attachments.empty()) return {};
  return queue::error(EBUSY, "the queue pair is attached to the multicast group " +
                                 to_string(qp.attachments.front().gid) + "; ibv_detach_mcast comes first");
}

bool stops(const ibv_qp_attr& attr, std::uint32_t mask) {
  return (mask & IBV_QP_STATE) != 0 && (attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_RESET);
}

Result<void> modify(Qp& qp, const ibv_qp_attr& attr, std::uint32_t mask) {
  const auto wanted = attributes_of(device_of(qp.verbs.qp_base.context), attr, mask);
  if (!wanted) return wanted.error();
  if (stops(attr, mask)) await_answers(qp);
  const queue::Instant now = wire::now();
  wire::UdpPort& port = *qp.seat.port;
  wire::TurnReport report;
  {
    queue::MutexLock lock(port.mutex);
    if (auto modified = qp.transport->modify(now, *wanted, mask); !modified) return modified;
    remember(attr, mask, qp.attr);
    qp.verbs.qp_base.state = static_cast<ibv_qp_state>(qp.transport->state());
    port.engine().on_post(now, qp.seat.qpn);
    report = port.send(now);
  }
  qp.context->runtime.settle(port, report);
  // A target that nothing completes on has had no other occasion to say why it failed.
  qp.context->runtime.log_reasons(qp.seat.qpn);
  return {};
}

Result<std::unique_ptr<Qp>> make_qp(const QpRequest& request) {
  Runtime& runtime = request.context.runtime;
  auto seat = runtime.take_seat();
  if (!seat) return seat.error();
  std::unique_ptr<Qp> qp;
  try {
    qp = std::make_unique<Qp>(request, *seat);
    if (qp->xrc_group) qp->xrc_group->add(*qp);
    runtime.set_reasons(seat->qpn, [raw = qp.get()] { return reasons_of(*raw); });
    queue::MutexLock lock(seat->port->mutex);
    seat->port->engine().add(seat->qpn, *qp->transport);
    if (request.attr.qp_type == IBV_QPT_UD) seat->port->tell_ip_options();
  } catch (const std::bad_alloc&) {
    if (qp && qp->xrc_group) qp->xrc_group->close(*qp);
    runtime.leave_seat(*seat, [] {});
    throw;
  }
  return qp;
}

// Of all that is asked for, an XRC target has its domain and its context.
Result<ibv_qp*> create_xrc_target(ibv_context* verbs, ibv_qp_init_attr_ex* attr) {
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) == 0 || attr->xrcd == nullptr) {
    return queue::error(EINVAL, "an XRC target needs an xrcd: comp_mask must have IBV_QP_INIT_ATTR_XRCD");
  }
  if (attr->comp_mask >= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) {
    return queue::error(EOPNOTSUPP, "comp_mask has unknown bits");
  }
  if (attr->xrcd->context != verbs) return queue::error(EINVAL, "the XRC domain belongs to another context");
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  ibv_qp_init_attr granted{};
  granted.qp_context = attr->qp_context;
  granted.qp_type = IBV_QPT_XRC_RECV;
  auto qp = make_qp({context, nullptr, &xrcd_of(attr->xrcd), granted});
  if (!qp) return qp.error();
  attr->cap = granted.cap;
  return &(*qp).release()->verbs.qp_base;
}

// The queue pair goes from its engine and its completions from the CQs; nothing more happens to it.
void take_from_engine(Qp& qp) {
  await_answers(qp);
  qp.context->runtime.log_reasons(qp.seat.qpn);
  qp.context->runtime.leave_seat(qp.seat, [&] {
    qp.context->regions.unbind_all_of(qp.seat.qpn);
    if (qp.send_cq) qp.send_cq->queue.purge(qp.seat.qpn);
    if (qp.recv_cq) qp.recv_cq->queue.purge(qp.seat.qpn);
    qp.transport->leave();
  });
}

void wait_for_events(Qp& qp) {
  qp.context->async_events.erase_if([&](const queue::AsyncEvent& event) { return event.handle == &qp.verbs; });
  qp.async_events.wait_until_acknowledged();
}

void close_opened(OpenedQp& handle) {
  Qp& target = handle.real;
  delete &handle;
  if (!target.xrc_group->close(target)) return;
  take_from_engine(target);
  wait_for_events(target);
  delete &target;
}

}  // namespace

Qp::Qp(const QpRequest& request, Seat the_seat)
    : QpHandle(*this),
      context(request.context),
      pd(request.pd),
      send_cq(request.attr.send_cq != nullptr ? &cq_of(request.attr.send_cq) : nullptr),
      recv_cq(request.attr.recv_cq != nullptr ? &cq_of(request.attr.recv_cq) : nullptr),
      srq(request.attr.srq != nullptr ? &srq_of(request.attr.srq) : nullptr),
      xrcd(request.xrcd),
      xrc_group(request.xrcd != nullptr ? request.xrcd->group : nullptr),
      seat(std::move(the_seat)),
      init(request.attr),
      send_queue(make_send_queue(init, seat.qpn)),
      receive_queue(make_receive_queue(init, seat.qpn)),
      denied_receives(make_denied_receives(*this)),
      transport(make_transport(init.qp_type, parts_of(*this))) {
  ibv_qp& base = verbs.qp_base;
  base.context = public_context(*context);
  base.qp_context = init.qp_context;
  base.pd = pd ? &pd->verbs : nullptr;
  base.send_cq = init.send_cq;
  base.recv_cq = init.recv_cq;
  base.srq = init.srq;
  base.handle = base.qp_num = seat.qpn.value();
  base.state = IBV_QPS_RESET;
  base.qp_type = init.qp_type;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  if (send_cq) send_cq->attach(seat.port);
  if (recv_cq) recv_cq->attach(seat.port);
}

// The builder's type is whole here.
Qp::~Qp() {
  if (send_cq) send_cq->detach(seat.port);
  if (recv_cq) recv_cq->detach(seat.port);
}

OpenedQp::OpenedQp(Xrcd& the_xrcd, Qp& target, void* qp_context)
    : QpHandle(target), context(*the_xrcd.context), xrcd(&the_xrcd) {
  verbs.qp_base = target.verbs.qp_base;
  verbs.qp_base.context = public_context(*context);
  verbs.qp_base.qp_context = qp_context;
  verbs.qp_base.state = IBV_QPS_UNKNOWN;
  pthread_mutex_init(&verbs.qp_base.mutex, nullptr);
  pthread_cond_init(&verbs.qp_base.cond, nullptr);
}

Result<ibv_qp*> create_qp(ibv_pd* verbs, ibv_qp_init_attr* attr) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if (auto checked = check(verbs, *attr); !checked) return checked.error();
  ibv_qp_init_attr granted = *attr;
  granted.cap.max_inline_data = std::max(granted.cap.max_inline_data, kInlineGranted);
  if (granted.qp_type == IBV_QPT_XRC_SEND) {
    granted.recv_cq = nullptr;
    granted.srq = nullptr;
  }
  const bool has_own_receives = granted.recv_cq != nullptr && granted.srq == nullptr;
  if (!has_own_receives) granted.cap.max_recv_wr = granted.cap.max_recv_sge = 0;
  auto qp = make_qp({*pd.context, &pd, nullptr, granted});
  if (!qp) return qp.error();
  attr->cap = granted.cap;
  return &(*qp).release()->verbs.qp_base;
}

Result<ibv_qp*> create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (number_of(attr->qp_type) == IBV_QPT_XRC_RECV) return create_xrc_target(context, attr);
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    return queue::error(EINVAL, "comp_mask must have IBV_QP_INIT_ATTR_PD and pd must be given");
  }
  if (attr->pd->context != context) return queue::error(EINVAL, "the PD belongs to another context");
  if (auto checked = check_extended(*attr); !checked) return checked.error();
  const std::uint32_t flags = (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 ? attr->create_flags : 0;
  const bool has_send_ops = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  if (has_send_ops) {
    if (auto checked = check_send_ops(attr->send_ops_flags); !checked) return checked.error();
  }
  ibv_qp_init_attr plain{attr->qp_context, attr->send_cq, attr->recv_cq,   attr->srq,
                         attr->cap,        attr->qp_type, attr->sq_sig_all};
  auto qp = create_qp(attr->pd, &plain);
  if (!qp) return qp;
  attr->cap = plain.cap;
  qp_of(*qp).hears_itself = flags == 0;
  if (has_send_ops) install_builder(qp_of(*qp), attr->send_ops_flags);
  return qp;
}

Result<void> modify_qp(ibv_qp* verbs, const ibv_qp_attr* attr, int mask) {
  Qp& qp = qp_of(verbs);
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  auto modified = modify(qp, *attr, static_cast<std::uint32_t>(mask));
  if (modified) verbs->state = qp.verbs.qp_base.state;  // of a handle that ibv_open_qp gave
  return modified;
}

Result<void> query_qp(ibv_qp* verbs, ibv_qp_attr* attr, int, ibv_qp_init_attr* init_attr) {
  Qp& qp = qp_of(verbs);
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  if (init_attr != nullptr) *init_attr = qp.init;
  queue::MutexLock lock(qp.seat.port->mutex);
  *attr = qp.attr;
  attr->cap = qp.init.cap;
  refresh(qp.transport->attributes(), *attr);
  qp.verbs.qp_base.state = attr->qp_state;
  return {};
}

// A target that others have opened lives on with them. Else first the queue pair goes, then events about it are waited
// for.
Result<void> destroy_qp(ibv_qp* verbs) {
  QpHandle& handle = qp_handle_of(verbs);
  Qp& qp = handle.real;
  if (auto alive = qp.context.check_alive(); !alive) return alive;
  if (auto free = check_no_attachment(qp); !free) return free;
  if (&handle != &qp) {
    close_opened(static_cast<OpenedQp&>(handle));
    return {};
  }
  if (qp.xrc_group && !qp.xrc_group->close(qp)) {
    qp.is_handle_closed = true;
    wait_for_events(qp);
    qp.xrcd.reset();
    return {};
  }
  take_from_engine(qp);
  wait_for_events(qp);
  delete &qp;
  return {};
}

}  // namespace nicless::provider
