// SPDX-License-Identifier: MIT
#include "cm/sidr.h"

#include <cerrno>
#include <utility>

namespace nicless::cm {

using wire::CmMessage;

SidrRequester::SidrRequester(Instant now, std::uint64_t tid, const wire::CmSidrReq& request)
    : message_{tid, request}, question_(Question(now, kMaxCmRetries, kLongestWait)) {}

void SidrRequester::on_reply(Instant now, const wire::CmSidrRep& reply) {
  if (reply.status == wire::SidrStatus::InvalidServiceId) return on_unreachable(now);
  end(Resolved{reply});
}

void SidrRequester::on_unreachable(Instant now) {
  if (question_) question_->on_refused(now);
}

void SidrRequester::on_impossible_service() {
  const auto& request = std::get<wire::CmSidrReq>(message_.body);
  end(Resolved{
      {.request_id = request.request_id, .status = wire::SidrStatus::InvalidServiceId, .service = request.service}});
}

void SidrRequester::on_deadline(Instant now) {
  if (!question_) return;
  switch (question_->on_deadline(now)) {
    case Question::Verdict::Wait:
      return;
    case Question::Verdict::Ask:
      is_to_be_sent_ = true;
      return;
    case Question::Verdict::NobodyThere:
      return on_impossible_service();
    case Question::Verdict::NoAnswer:
      return end(Unresolved{});
  }
}

std::optional<CmMessage> SidrRequester::next_message() {
  if (!std::exchange(is_to_be_sent_, false)) return std::nullopt;
  return message_;
}

std::optional<Resolution> SidrRequester::next_event() {
  return std::exchange(event_, std::nullopt);
}

std::optional<Instant> SidrRequester::next_deadline() const {
  if (!question_) return std::nullopt;
  return question_->deadline();
}

void SidrRequester::end(const Resolution& resolution) {
  if (!question_) return;
  question_.reset();
  is_to_be_sent_ = false;
  event_ = resolution;
}

SidrResponder::SidrResponder(const CmMessage& request)
    : reply_{request.tid, wire::CmSidrRep{.request_id = std::get<wire::CmSidrReq>(request.body).request_id,
                                          .service = std::get<wire::CmSidrReq>(request.body).service}} {}

Result<void> SidrResponder::answer(Instant now, wire::CmSidrRep reply) {
  if (until_) return queue::error(EINVAL, "the request was answered already");
  const auto& known = std::get<wire::CmSidrRep>(reply_.body);
  reply.request_id = known.request_id;
  reply.service = known.service;
  reply_.body = reply;
  until_ = now + kAnswerKept;
  is_to_be_sent_ = true;
  return {};
}

void SidrResponder::on_request() {
  is_to_be_sent_ = until_.has_value();
}

std::optional<CmMessage> SidrResponder::next_message() {
  if (!std::exchange(is_to_be_sent_, false)) return std::nullopt;
  return reply_;
}

}  // namespace nicless::cm
