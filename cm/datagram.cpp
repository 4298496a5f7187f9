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

void pump(SidrAnswer& answer) {
  while (const auto message = answer.responder.next_message()) send(answer.path, *message);
}

// It is the peer's now, and stays only to be repeated.
void send_and_release(SidrAnswer& answer) {
  answer.owner = nullptr;
  answer.listener_port.reset();
  pump(answer);
}

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

void pump(Agent& agent, SidrTable::RequestId id) REQUIRES(agent.mutex) {
  SidrQuestion& question = *agent.sidr.find(id);
  while (const auto message = question.requester.next_message())
    if (const int e = send(question.path, *message)) question.requester.on_unsendable(e);
  const auto resolution = question.requester.next_event();
  if (!resolution) return agent.sidr.refresh(id);
  CmId& owner = *question.owner;
  agent.sidr.erase(id);
  owner.sidr_question.reset();
  report(std::visit([&](const auto& what) { return to_event(owner, what); }, *resolution));
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
  const SidrTable::RequestId request_id = me.local_id.value();
  wire::CmSidrReq request =
      build_sidr_request(static_cast<wire::PortSpace>(id.ps), {id.local, id.source_port}, id.remote, data);
  request.request_id = request_id;
  SidrQuestion& question = agent.sidr.ask(request_id, {SidrRequester(now(), me.tid, request), *path, &id});
  if (path->remote.port == 0) question.requester.on_impossible_service();
  id.sidr_question = request_id;
  id.stage = CmId::Stage::Connecting;
  pump(agent, request_id);
  return {};
}

Result<void> give(CmId& id, const wire::CmSidrRep& reply) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (!id.sidr_request)
    return queue::error(EINVAL, "the id did not come with a CONNECT_REQUEST, or was answered already");
  SidrAnswer& answer = *(*agent)->sidr.find(*id.sidr_request);
  if (auto given = answer.responder.answer(now(), reply); !given) return given;
  send_and_release(answer);
  (*agent)->sidr.refresh(*id.sidr_request);
  id.sidr_request.reset();
  id.stage = CmId::Stage::Connecting;
  return {};
}

// The same question came before: its answer is repeated, if there is one. A new question under an old name replaces
// what was answered long ago.
bool is_repeated(Agent& agent, const SidrTable::AnswerKey& key, const wire::CmMessage& message) REQUIRES(agent.mutex) {
  SidrAnswer* known = agent.sidr.find(key);
  if (known == nullptr) return false;
  if (known->responder.tid() != message.tid && known->owner == nullptr) {
    agent.sidr.erase(key);
    return false;
  }
  known->responder.on_request();
  pump(*known);
  return true;
}

void refuse(const MadPath& path, const wire::CmMessage& message) {
  SidrResponder responder(message);
  static_cast<void>(responder.answer({}, build_sidr_refusal({})));
  if (const auto reply = responder.next_message()) send(path, *reply);
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

void release_datagram(Agent& agent, CmId& id) {
  if (id.sidr_question) agent.sidr.erase(*id.sidr_question);
  id.sidr_question.reset();
  if (!id.sidr_request) return;
  SidrAnswer& answer = *agent.sidr.find(*id.sidr_request);
  static_cast<void>(answer.responder.answer(now(), build_sidr_refusal({})));
  send_and_release(answer);
  agent.sidr.refresh(*id.sidr_request);
  id.sidr_request.reset();
}

bool sidr_request_arrived(Agent& agent, MadPath path, const wire::CmMessage& message) {
  const auto& request = std::get<wire::CmSidrReq>(message.body);
  const SidrTable::AnswerKey key{path.remote.address, request.request_id};
  if (is_repeated(agent, key, message)) return true;
  CmId* listener = agent.find_listener(request.service, path.local);
  if (listener == nullptr || !is_datagram(*listener)) return false;
  if (listener->queued_requests >= listener->backlog) return true;  // forgotten; the peer asks again
  const auto cma = request.cma();
  if (!cma) {  // who asks? not an rdma_cm
    refuse(path, message);
    return true;
  }
  CmId* requested = make_requested_id(agent, *listener, path, {*cma, wire::port_of(request.service)});
  if (requested == nullptr) {
    refuse(path, message);
    return true;
  }
  agent.sidr.take(key, {SidrResponder(message), path, requested, listener->binding->socket});
  requested->sidr_request = key;
  CmEvent* event = make_request_event(*listener, *requested);
  event->param.ud = {};
  event->set_private_data(user_data(*listener, request.private_data));
  report(event);
  return true;
}

void sidr_reply_arrived(Agent& agent, Instant at_time, const wire::Gid& from, const wire::CmSidrRep& reply) {
  SidrQuestion* question = agent.sidr.find(reply.request_id);
  if (question == nullptr || question->path.remote.address != from) return;
  question->requester.on_reply(at_time, reply);
  pump(agent, reply.request_id);
}

void sidr_unreachable(Agent& agent, Instant at_time, const wire::Endpoint& remote) {
  for (const SidrTable::RequestId id : agent.sidr.asked(remote)) {
    agent.sidr.find(id)->requester.on_unreachable(at_time);
    pump(agent, id);
  }
}

void sidr_deadlines(Agent& agent, Instant at_time) {
  while (const auto id = agent.sidr.due_question(at_time)) {
    agent.sidr.find(*id)->requester.on_deadline(at_time);
    pump(agent, *id);
  }
  while (const auto key = agent.sidr.due_answer(at_time)) agent.sidr.erase(*key);
}

}  // namespace nicless::cm
