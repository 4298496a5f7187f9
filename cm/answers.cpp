// SPDX-License-Identifier: MIT
#include "cm/answers.h"

namespace nicless::cm {
namespace {

// The receiver's id in a message, or nothing for those that do not carry one.
template <typename Body>
std::optional<CommId> receiver_of(const Body& body) {
  if constexpr (requires { body.remote_id; }) return body.remote_id;
  return std::nullopt;
}

// What makes sense to someone who has no such connection. A REP: its sender must not wait for an RTU.
std::optional<wire::CmMessage::Body> polite(const wire::CmRep& rep) {
  return wire::CmRej{.local_id = rep.remote_id,
                     .remote_id = rep.local_id,
                     .answered = wire::CmAnswered::Rep,
                     .reason = wire::RejReason::InvalidCommId};
}
// The release of a connection that is gone: it ended, so yes.
std::optional<wire::CmMessage::Body> polite(const wire::CmDreq& dreq) {
  return wire::CmDrep{.local_id = dreq.remote_id, .remote_id = dreq.local_id};
}
std::optional<wire::CmMessage::Body> polite(const wire::CmSidrReq& req) {
  return wire::CmSidrRep{
      .request_id = req.request_id, .status = wire::SidrStatus::InvalidServiceId, .service = req.service};
}
std::optional<wire::CmMessage::Body> polite(const wire::CmLap& lap) {
  return wire::CmApr{.local_id = lap.remote_id, .remote_id = lap.local_id, .status = wire::CmApr::kUnsupported};
}
template <typename Other>
std::optional<wire::CmMessage::Body> polite(const Other&) {
  return std::nullopt;
}

}  // namespace

ConnectionEntry* find_addressee(ConnectionTable& connections, const wire::Gid& from, const wire::CmMessage& message) {
  if (const auto* req = std::get_if<wire::CmReq>(&message.body)) return connections.find_by_peer(from, req->local_id);
  const auto receiver = std::visit([](const auto& body) { return receiver_of(body); }, message.body);
  if (!receiver) return nullptr;
  // Whoever gives up before an answer does not know this end's id. IBTA 12.9.8.
  const auto* rej = std::get_if<wire::CmRej>(&message.body);
  if (rej != nullptr && receiver->value() == 0) return connections.find_by_peer(from, rej->local_id);
  // Alternate paths are not supported: the same answer with and without a connection.
  if (std::holds_alternative<wire::CmLap>(message.body)) return nullptr;
  ConnectionEntry* entry = connections.find(*receiver);
  return entry != nullptr && entry->path.remote.address == from ? entry : nullptr;
}

wire::CmMessage refusal(const wire::CmMessage& request, wire::RejReason reason) {
  const auto& req = std::get<wire::CmReq>(request.body);
  return {request.tid, wire::CmRej{.remote_id = req.local_id, .answered = wire::CmAnswered::Req, .reason = reason}};
}

std::optional<wire::RejReason> refuses(const wire::CmReq& request) {
  if (request.transport != wire::CmService::Rc && request.transport != wire::CmService::Uc)
    return wire::RejReason::InvalidTransportType;
  if (!request.cma()) return wire::RejReason::Unsupported;  // who asks? not an rdma_cm
  return std::nullopt;
}

std::optional<wire::CmMessage> answer_of_nobody(const wire::CmMessage& message) {
  const auto body = std::visit([](const auto& received) { return polite(received); }, message.body);
  if (!body) return std::nullopt;
  return wire::CmMessage{message.tid, *body};
}

}  // namespace nicless::cm
