// SPDX-License-Identifier: MIT
#include "cm/resolutions.h"

#include <utility>

#include "cm/messages.h"
#include "cm/take_front.h"

namespace nicless::cm {

void Resolutions::ask(Instant now, std::uint64_t tid, const wire::CmSidrReq& request, const MadPath& path,
                      CmId* owner) {
  SidrQuestion& question = table_.ask(request.request_id, {SidrRequester(now, tid, request), path, owner});
  if (path.remote.port == 0) question.requester.on_impossible_service();
  pump(request.request_id);
}

void Resolutions::withdraw(RequestId id) {
  table_.erase(id);
}

Resolutions::AnswerKey Resolutions::take(const wire::CmMessage& request, const MadPath& path, CmId* owner,
                                         std::shared_ptr<void> port) {
  const AnswerKey key{path.remote.address, std::get<wire::CmSidrReq>(request.body).request_id};
  table_.take(key, {SidrResponder(request), path, owner, std::move(port)});
  return key;
}

Result<void> Resolutions::answer(Instant now, const AnswerKey& key, const wire::CmSidrRep& reply) {
  SidrAnswer& answer = *table_.find(key);
  if (auto given = answer.responder.answer(now, reply); !given) return given;
  answer.owner = nullptr;  // it is the peer's now, and stays only to be repeated
  answer.listener_port.reset();
  pump(answer);
  table_.refresh(key);
  return {};
}

void Resolutions::refuse(const wire::CmMessage& request, const MadPath& path) {
  SidrResponder responder(request);
  static_cast<void>(responder.answer({}, build_sidr_refusal({})));
  while (const auto reply = responder.next_message()) outbox_.push_back({path, *reply});
}

bool Resolutions::on_message(Instant now, const MadPath& path, const wire::CmMessage& message) {
  if (const auto* reply = std::get_if<wire::CmSidrRep>(&message.body)) {
    on_reply(now, path.remote.address, *reply);
    return true;
  }
  const auto* request = std::get_if<wire::CmSidrReq>(&message.body);
  return request != nullptr && is_repeated({path.remote.address, request->request_id}, message);
}

void Resolutions::on_reply(Instant now, const wire::Gid& from, const wire::CmSidrRep& reply) {
  SidrQuestion* question = table_.find(reply.request_id);
  if (question == nullptr || question->path.remote.address != from) return;
  question->requester.on_reply(now, reply);
  pump(reply.request_id);
}

// The same question came before: its answer is repeated, if there is one. A new question under an old name replaces
// what was answered long ago.
bool Resolutions::is_repeated(const AnswerKey& key, const wire::CmMessage& request) {
  SidrAnswer* known = table_.find(key);
  if (known == nullptr) return false;
  if (known->responder.tid() != request.tid && known->owner == nullptr) {
    table_.erase(key);
    return false;
  }
  known->responder.on_request();
  pump(*known);
  return true;
}

void Resolutions::on_unreachable(Instant now, const wire::Endpoint& remote) {
  for (const RequestId id : table_.asked(remote)) {
    table_.find(id)->requester.on_unreachable(now);
    pump(id);
  }
}

void Resolutions::on_unsendable(const wire::CmMessage& message, int errno_value) {
  const auto* request = std::get_if<wire::CmSidrReq>(&message.body);
  SidrQuestion* question = request != nullptr ? table_.find(request->request_id) : nullptr;
  if (question == nullptr) return;  // an answer is as good as lost
  question->requester.on_unsendable(errno_value);
  pump(request->request_id);
}

void Resolutions::on_deadline(Instant now) {
  while (const auto id = table_.due_question(now)) {
    table_.find(*id)->requester.on_deadline(now);
    pump(*id);
  }
  while (const auto key = table_.due_answer(now)) table_.erase(*key);
}

std::optional<OutgoingMad> Resolutions::next_message() {
  return take_front(outbox_);
}

std::optional<Resolutions::Told> Resolutions::next_event() {
  return take_front(told_);
}

void Resolutions::pump(RequestId id) {
  SidrQuestion& question = *table_.find(id);
  while (const auto message = question.requester.next_message()) outbox_.push_back({question.path, *message});
  const auto resolution = question.requester.next_event();
  if (!resolution) return table_.refresh(id);
  told_.push_back({question.owner, *resolution});
  table_.erase(id);
}

void Resolutions::pump(SidrAnswer& answer) {
  while (const auto message = answer.responder.next_message()) outbox_.push_back({answer.path, *message});
}

}  // namespace nicless::cm
