// SPDX-License-Identifier: MIT
#include "wire/packet/cm_answers.h"

namespace nicless::wire {
namespace {

CmRej rejection(const CmReq& req, RejReason reason) {
  return {.remote_id = req.local_id, .answered = CmAnswered::Req, .reason = reason};
}

std::optional<CmMessage::Body> polite(const CmReq& req) {
  return rejection(req, RejReason::InvalidServiceId);
}
// What makes sense to someone who has no such connection. A REP: its sender must not wait for an RTU.
std::optional<CmMessage::Body> polite(const CmRep& rep) {
  return CmRej{.local_id = rep.remote_id,
               .remote_id = rep.local_id,
               .answered = CmAnswered::Rep,
               .reason = RejReason::InvalidCommId};
}
// Its sender believes in a connection that is gone.
std::optional<CmMessage::Body> polite(const CmRtu& rtu) {
  return CmRej{.local_id = rtu.remote_id,
               .remote_id = rtu.local_id,
               .answered = CmAnswered::Other,
               .reason = RejReason::InvalidCommId};
}
// The release of a connection that is gone: it ended, so yes.
std::optional<CmMessage::Body> polite(const CmDreq& dreq) {
  return CmDrep{.local_id = dreq.remote_id, .remote_id = dreq.local_id};
}
std::optional<CmMessage::Body> polite(const CmSidrReq& req) {
  return CmSidrRep{.request_id = req.request_id, .status = SidrStatus::InvalidServiceId, .service = req.service};
}
std::optional<CmMessage::Body> polite(const CmLap& lap) {
  return CmApr{.local_id = lap.remote_id, .remote_id = lap.local_id, .status = CmApr::kUnsupported};
}
template <typename Other>
std::optional<CmMessage::Body> polite(const Other&) {
  return std::nullopt;
}

}  // namespace

CmMessage refusal(const CmMessage& request, RejReason reason) {
  return {request.tid, rejection(std::get<CmReq>(request.body), reason)};
}

std::optional<CmMessage> answer_of_nobody(const CmMessage& message) {
  const auto body = std::visit([](const auto& received) { return polite(received); }, message.body);
  if (!body) return std::nullopt;
  return CmMessage{message.tid, *body};
}

}  // namespace nicless::wire
