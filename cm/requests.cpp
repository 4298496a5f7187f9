// SPDX-License-Identifier: MIT
// Requests that arrive at a listener, and what becomes of connections, as events: rdma_get_cm_event(3).
#include <cerrno>
#include <memory>
#include <string>

#include "cm/address.h"
#include "cm/agent.h"
#include "cm/cm_id.h"
#include "cm/connect.h"
#include "cm/event_names.h"
#include "cm/requests.h"
#include "cm/resolve.h"
#include "provider/private.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

// The kernel reports what the message holds: the sender's depth is the receiver's resources, and the other way round.
rdma_conn_param conn_param(const wire::CmReq& req) {
  rdma_conn_param param{};
  param.responder_resources = req.initiator_depth;
  param.initiator_depth = req.responder_resources;
  param.flow_control = req.flow_control;
  param.retry_count = req.retry_count;
  param.rnr_retry_count = req.rnr_retry_count;
  param.srq = req.srq;
  param.qp_num = req.local_qpn.value();
  return param;
}

rdma_conn_param conn_param(const wire::CmRep& rep) {
  rdma_conn_param param{};
  param.responder_resources = rep.initiator_depth;
  param.initiator_depth = rep.responder_resources;
  param.flow_control = rep.flow_control;
  param.rnr_retry_count = rep.rnr_retry_count;
  param.srq = rep.srq;
  param.qp_num = rep.queue_pair().value();
  return param;
}

// Both ends have queue pairs of the same kind, or an initiator and a target of XRC.
bool serves(const CmId& listener, const wire::CmReq& req) {
  switch (req.transport) {
    case wire::CmService::Rc:
      return listener.qp_type == IBV_QPT_RC;
    case wire::CmService::Uc:
      return listener.qp_type == IBV_QPT_UC;
    case wire::CmService::Extended:
      return listener.qp_type == IBV_QPT_XRC_RECV && req.extended_transport == wire::CmReq::kXrc;
    default:
      return false;
  }
}

CmEvent* to_event(CmId& id, const Replied& replied) {
  id.remote_ece = {replied.reply.ece.vendor_id, replied.reply.ece.options, 0};
  auto* event = new CmEvent(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
  event->param.conn = conn_param(replied.reply);
  event->set_private_data(replied.reply.private_data);
  return event;
}
CmEvent* to_event(CmId& id, const BecameEstablished&) {
  return new CmEvent(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}
CmEvent* to_event(CmId& id, const Rejected& rejected) {
  const int reason = static_cast<int>(rejected.reason);
  if (!id.is_sync)  // else the call that fails says it
    nicless_log(NICLESS_LOG_WARN,
                ("connection with " + wire::to_string(id.remote) + ": REJECTED, " + reject_reason(reason)).c_str());
  auto* event = new CmEvent(id, RDMA_CM_EVENT_REJECTED, reason);
  event->set_private_data(rejected.private_data);
  return event;
}
CmEvent* to_event(CmId& id, const Unreachable& unreachable) {
  if (!id.is_sync)  // else the call that fails says it
    nicless_log(NICLESS_LOG_WARN, ("connection with " + wire::to_string(id.remote) + ": UNREACHABLE, " +
                                   unreachable_why(unreachable.status))
                                      .c_str());
  return new CmEvent(id, RDMA_CM_EVENT_UNREACHABLE, unreachable.status);
}
CmEvent* to_event(CmId& id, const Disconnected& disconnected) {
  return new CmEvent(id, RDMA_CM_EVENT_DISCONNECTED, disconnected.status);
}
CmEvent* to_event(CmId& id, const TimewaitExited&) {
  return new CmEvent(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
}

}  // namespace

void report(CmId& id, const ConnectionEvent& event) {
  report(std::visit([&](const auto& what) { return to_event(id, what); }, event));
}

std::span<const std::byte> user_data(const CmId& listener, std::span<const std::byte> whole) {
  const bool is_ib = listener.route.addr.src_addr.sa_family == AF_IB;
  return is_ib ? whole : whole.subspan(wire::CmaHeader::kSize);
}

CmId* make_requested_id(Agent& agent, CmId& listener, MadPath& path, const Asker& asker) {
  std::uint16_t port = 0;
  if (nicless_gsi_shared(&path.gsi, &port) != 0) return nullptr;
  auto made = std::make_unique<CmId>(listener.context, listener.ps, listener.qp_type);
  if (!bind_device(agent, *made, path.local)) return nullptr;
  made->stage = CmId::Stage::Requested;
  made->ack_timeout = listener.ack_timeout;
  made->remote = {path.remote.address, asker.cma.source_port};
  made->source_port = asker.service_port;
  made->route.addr.src_storage = to_address(asker.cma.destination, asker.service_port);
  made->route.addr.dst_storage = to_address(asker.cma.source, asker.cma.source_port);
  wire::to_raw(made->remote.address, made->route.addr.addr.ibaddr.dgid.raw);
  report_to(*made, listener.channel);
  return made.release();
}

// make_requested_id has made none.
wire::RejReason why_no_id(Agent& agent, const wire::Gid& asked) NO_THREAD_SAFETY_ANALYSIS {
  const auto place = agent.devices.find(asked);
  if (place) return wire::RejReason::NoResources;
  nicless_log(NICLESS_LOG_WARN, ("a connection request is refused: " + place.error().why).c_str());
  return wire::RejReason::InvalidGid;
}

CmEvent* make_request_event(CmId& listener, CmId& requested) {
  auto* event = new CmEvent(listener, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  event->id = &requested;
  event->listen_id = &listener;
  ++listener.queued_requests;
  return event;
}

void request_arrived(Agent& agent, CmId& listener, MadPath path,
                     const wire::CmMessage& message) NO_THREAD_SAFETY_ANALYSIS {
  const auto& req = std::get<wire::CmReq>(message.body);
  if (!serves(listener, req)) return refuse(path, message, wire::RejReason::InvalidTransportType);
  if (listener.queued_requests >= listener.backlog) return;
  CmId* child = make_requested_id(agent, listener, path, {*req.cma(), wire::port_of(req.service)});
  if (child == nullptr) return refuse(path, message, why_no_id(agent, path.local));
  // As the kernel fills it from the request.
  child->tos = path.traffic_class = req.primary.traffic_class;
  child->path_mtu = req.path_mtu;
  show_path(*child);
  child->remote_ece = {req.ece.vendor_id, req.ece.options, 0};
  child->initiator_depth = req.responder_resources;
  child->responder_resources = req.initiator_depth;
  child->starting_psn = wire::Psn(agent.rng.next_u32());
  const Identity me = agent.make_identity(child->device->ca_guid);
  child->connection = &agent.connections.add(Connection::answer(me, message), path, child);
  child->connection->listener_port = listener.binding->socket;
  CmEvent* event = make_request_event(listener, *child);
  event->param.conn = conn_param(req);
  event->set_private_data(user_data(listener, req.private_data));
  report(event);
}

bool fetch_request(CmEvent& event) {
  CmId& listener = *event.owner;
  CmId& child = id_of(event.id);
  const auto agent = Agent::instance();
  if (!agent) return false;
  {
    Turn turn(**agent);
    --listener.queued_requests;
    child.context = listener.context;
  }
  if (!listener.is_sync && child.channel == listener.channel) return true;
  if (migrate_id(child, listener.is_sync ? nullptr : listener.channel)) return true;
  static_cast<void>(destroy_id(child));
  return false;
}

}  // namespace nicless::cm
