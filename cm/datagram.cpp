// SPDX-License-Identifier: MIT
#include "cm/datagram.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "cm/conn_param.h"
#include "cm/event_names.h"
#include "cm/messages.h"
#include "cm/requests.h"
#include "provider/private.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

using wire::SidrStatus;

std::string with(const CmId& id) {
  return "datagram service " + wire::to_string(id.remote) + ": UNREACHABLE, ";
}

CmEvent* to_event(CmId& id, const Resolved& resolved) {
  const wire::CmSidrRep& reply = resolved.reply;
  const int status = static_cast<int>(reply.status);
  const bool is_valid = reply.status == SidrStatus::Valid;
  if (!is_valid && !id.is_sync)  // else the call that fails says it
    nicless_log(NICLESS_LOG_WARN, (with(id) + sidr_status(status)).c_str());
  auto* event = new CmEvent(id, is_valid ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE, status);
  event->param.ud = {};
  event->set_private_data(reply.private_data);
  if (!is_valid) return event;
  event->param.ud.ah_attr = address_handle_of(id, id.remote.address);
  event->param.ud.qp_num = reply.qpn.value();
  event->param.ud.qkey = reply.qkey;
  return event;
}

CmEvent* to_event(CmId& id, const Unresolved& unresolved) {
  if (!id.is_sync) nicless_log(NICLESS_LOG_WARN, (with(id) + unreachable_why(unresolved.status)).c_str());
  return new CmEvent(id, RDMA_CM_EVENT_UNREACHABLE, unresolved.status);
}

Result<void> ask(Agent& agent, CmId& id, const rdma_conn_param* param) REQUIRES(agent.mutex) {
  if (id.stage != CmId::Stage::RouteResolved)
    return queue::error(EINVAL,
                        "rdma_resolve_addr and rdma_resolve_route have to succeed before, and one "
                        "service is all an id can ask for");
  const auto path = path_to_service(id);
  if (!path) return path.error();
  const auto user = private_data_of(param);
  std::vector<std::byte> data = std::exchange(id.connect_data, {});
  data.insert(data.end(), user.begin(), user.end());
  const Identity me = agent.make_identity(id.device->ca_guid);
  const Resolutions::RequestId request_id = me.local_id.value();
  wire::CmSidrReq request =
      build_sidr_request(static_cast<wire::PortSpace>(id.ps), {id.local, id.source_port}, id.remote, data);
  request.request_id = request_id;
  id.sidr_question = request_id;
  id.stage = CmId::Stage::Connecting;
  agent.resolutions.ask(now(), me.tid, request, *path, &id);
  agent.flush(now());
  return {};
}

Result<void> give(CmId& id, const wire::CmSidrRep& reply) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (!id.sidr_request)
    return queue::error(EINVAL, "the id did not come with a CONNECT_REQUEST, or was answered already");
  if (auto given = (*agent)->resolutions.answer(now(), *id.sidr_request, reply); !given) return given;
  (*agent)->flush(now());
  id.sidr_request.reset();
  id.stage = CmId::Stage::Connecting;
  return {};
}

}  // namespace

Result<void> connect_datagram(CmId& id, const rdma_conn_param* param) {
  const std::size_t bytes = id.connect_data.size() + private_data_of(param).size();
  if (auto ok = check_length(bytes, wire::CmSidrReq::kUserBytes); !ok) return ok;
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    if (auto asked = ask(**agent, id, param); !asked) return asked;
  }
  return complete(id);
}

Result<void> accept_datagram(CmId& id, const rdma_conn_param* param) {
  const auto data = private_data_of(param);
  if (auto ok = check_length(data.size(), wire::CmSidrRep::kPrivateBytes); !ok) return ok;
  auto given = give(id, build_sidr_reply(queue::Qpn(qp_number(id, param)), RDMA_UDP_QKEY, data));
  if (given) release_shown_event(id);
  return given;
}

Result<void> reject_datagram(CmId& id, std::span<const std::byte> private_data) {
  if (auto ok = check_length(private_data.size(), wire::CmSidrRep::kPrivateBytes); !ok) return ok;
  return give(id, build_sidr_refusal(private_data));
}

ibv_ah_attr address_handle_of(const CmId& id, const wire::Gid& destination) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = id.port_num;
  wire::to_raw(destination, attr.grh.dgid.raw);
  attr.grh.sgid_index = id.place.index;
  attr.grh.hop_limit = 64;
  attr.grh.traffic_class = id.tos;
  return attr;
}

void report(CmId& id, const Resolution& resolution) {
  id.sidr_question.reset();
  report(std::visit([&](const auto& what) { return to_event(id, what); }, resolution));
}

void release_datagram(Agent& agent, CmId& id) {
  if (id.sidr_question) agent.resolutions.withdraw(*id.sidr_question);
  id.sidr_question.reset();
  if (!id.sidr_request) return;
  static_cast<void>(agent.resolutions.answer(now(), *id.sidr_request, build_sidr_refusal({})));
  agent.flush(now());
  id.sidr_request.reset();
}

bool sidr_request_arrived(Agent& agent, MadPath path, const wire::CmMessage& message) {
  const auto& request = std::get<wire::CmSidrReq>(message.body);
  CmId* listener = agent.find_listener(request.service, path.local);
  if (listener == nullptr || !is_datagram(*listener)) return false;
  if (listener->queued_requests >= listener->backlog) return true;  // forgotten; the peer asks again
  const auto cma = request.cma();                                   // none: who asks? not an rdma_cm
  const MadPath asked_by = path;
  CmId* requested = cma ? make_requested_id(agent, *listener, path, {*cma, wire::port_of(request.service)}) : nullptr;
  if (requested == nullptr) {
    agent.resolutions.refuse(message, asked_by);
    agent.flush(now());
    return true;
  }
  requested->sidr_request = agent.resolutions.take(message, path, requested, listener->binding->socket);
  CmEvent* event = make_request_event(*listener, *requested);
  event->param.ud = {};
  event->set_private_data(user_data(*listener, request.private_data));
  report(event);
  return true;
}

}  // namespace nicless::cm
