// SPDX-License-Identifier: MIT
#include "cm/connection.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cm/take_front.h"

namespace nicless::cm {

using wire::CmAnswered;
using wire::CmMessage;
using wire::RejReason;

namespace {

Duration response_wait(std::uint8_t response_timeout) {
  return wire_time(response_timeout) + 2 * wire_time(kPacketLifetime);
}

}  // namespace

Connection Connection::connect(Instant now, const Identity& me, wire::CmReq request) {
  request.local_id = me.local_id;
  request.local_ca_guid = me.ca_guid;
  request.max_cm_retries = kMaxCmRetries;
  const Question question(now, kMaxCmRetries, response_wait(request.remote_response_timeout));
  Connection c(me, ReqSent{request, question});
  c.exchange_tid_ = me.tid;
  c.local_qpn_ = request.local_qpn;
  c.response_wait_ = response_wait(request.remote_response_timeout);
  c.agreement_ = {.rq_psn = request.starting_psn,
                  .path_mtu = request.path_mtu,
                  .ack_timeout = request.primary.ack_timeout,
                  .retry_count = request.retry_count,
                  .rnr_retry_count = request.rnr_retry_count,
                  .responder_resources = request.responder_resources,
                  .initiator_depth = request.initiator_depth,
                  .traffic_class = request.primary.traffic_class,
                  .hop_limit = request.primary.hop_limit,
                  .flow_label = request.primary.flow_label};
  c.send(request);
  return c;
}

Connection Connection::answer(const Identity& me, const CmMessage& message) {
  const auto& request = std::get<wire::CmReq>(message.body);
  Connection c(me, ReqReceived{});
  c.exchange_tid_ = message.tid;
  c.remote_id_ = request.local_id;
  c.response_wait_ = response_wait(request.local_response_timeout);
  c.retries_ = request.max_cm_retries;
  // The peer's initiator depth is what this end has to take, and the other way round.
  c.agreement_ = {.remote_qpn = request.local_qpn,
                  .sq_psn = request.starting_psn,
                  .path_mtu = request.path_mtu,
                  .ack_timeout = request.primary.ack_timeout,
                  .retry_count = request.retry_count,
                  .rnr_retry_count = request.rnr_retry_count,
                  .responder_resources = request.initiator_depth,
                  .initiator_depth = request.responder_resources,
                  .traffic_class = request.primary.traffic_class,
                  .hop_limit = request.primary.hop_limit,
                  .flow_label = request.primary.flow_label};
  return c;
}

Result<void> Connection::accept(Instant now, wire::CmRep reply) {
  if (!is_answering()) return queue::error(EINVAL, "no connection request is waiting for an answer here");
  reply.local_id = me_.local_id;
  reply.remote_id = remote_id_;
  reply.local_ca_guid = me_.ca_guid;
  local_qpn_ = reply.queue_pair();
  agreement_.rq_psn = reply.starting_psn;
  agreement_.responder_resources = reply.responder_resources;
  agreement_.initiator_depth = reply.initiator_depth;
  state_ = RepSent{reply, Question(now, retries_, response_wait_)};
  send(reply);
  return {};
}

Result<void> Connection::reject(RejReason reason, std::span<const std::byte> private_data) {
  const bool is_of_reply = std::holds_alternative<RepReceived>(state_);
  if (!is_answering() && !is_of_reply) return queue::error(EINVAL, "there is no request or reply here to reject");
  const wire::CmRej rej = make_rej(is_of_reply ? CmAnswered::Rep : CmAnswered::Req, reason, private_data);
  send(rej);
  state_ = is_of_reply ? Closed{rej} : Closed{};
  return {};
}

Result<void> Connection::establish() {
  if (!std::holds_alternative<RepReceived>(state_))
    return queue::error(EINVAL, "the peer's reply has not arrived, or was answered already");
  send(wire::CmRtu{.local_id = me_.local_id, .remote_id = remote_id_});
  state_ = Established{};
  return {};
}

Result<void> Connection::notify_established(Instant) {
  if (is_established()) return queue::error(EISCONN, "the connection is established already");
  auto* sent = std::get_if<RepSent>(&state_);
  if (sent == nullptr) return queue::error(EINVAL, "no accepted connection is waiting to be established here");
  state_ = Established{sent->reply};
  emit(BecameEstablished{});
  return {};
}

void Connection::disconnect(Instant now) {
  if (is_established() || std::holds_alternative<RepSent>(state_)) begin_disconnect(now);
}

void Connection::abandon(Instant now) {
  is_abandoned_ = true;
  events_.clear();
  if (is_established()) {
    begin_disconnect(now);
  } else if (std::holds_alternative<ReqSent>(state_)) {
    send_rej(CmAnswered::Other, RejReason::Timeout, {});
    state_ = Closed{};
  } else if (is_answering() || std::holds_alternative<RepReceived>(state_)) {
    static_cast<void>(reject(RejReason::ConsumerDefined, {}));
  } else if (std::holds_alternative<RepSent>(state_)) {
    send_rej(CmAnswered::Other, RejReason::ConsumerDefined, {});
    state_ = Closed{};
  }
}

void Connection::on_message(Instant now, const CmMessage& message) {
  received_tid_ = message.tid;
  std::visit([&](const auto& body) { on_body(now, body); }, message.body);
}

// Only a duplicate comes here: the first one made this connection.
void Connection::on_body(Instant, const wire::CmReq&) {
  if (is_answering()) {
    send_mra(CmAnswered::Req);
  } else if (const auto* sent = std::get_if<RepSent>(&state_)) {
    send(sent->reply);
  } else if (std::holds_alternative<Timewait>(state_)) {
    send_rej(CmAnswered::Req, RejReason::StaleConnection, {});
  }
}

void Connection::on_body(Instant now, const wire::CmMra& mra) {
  const Instant patience = now + response_wait(mra.service_timeout);
  if (auto* asked = std::get_if<ReqSent>(&state_); asked != nullptr && mra.answered == CmAnswered::Req) {
    asked->question.wait_until(patience);
    asked->is_patient = true;
  } else if (auto* replied = std::get_if<RepSent>(&state_); replied != nullptr && mra.answered == CmAnswered::Rep) {
    replied->question.wait_until(patience);
  }
}

void Connection::on_body(Instant now, const wire::CmRej& rej) {
  if (std::holds_alternative<Timewait>(state_) || std::holds_alternative<Closed>(state_)) return;
  if (is_established() || std::holds_alternative<DreqSent>(state_)) {
    end(now, 0);
  } else if (std::holds_alternative<ReqSent>(state_) && rej.reason == RejReason::InvalidServiceId) {
    on_unreachable(now);  // the port is open and nobody listens yet: the same as no port at all
  } else {
    refuse(now, {rej.reason, rej.private_data});
  }
}

void Connection::on_body(Instant, const wire::CmRep& rep) {
  if (std::holds_alternative<ReqSent>(state_)) {
    remote_id_ = rep.local_id;
    agreement_.remote_qpn = rep.queue_pair();
    agreement_.sq_psn = rep.starting_psn;
    agreement_.rnr_retry_count = rep.rnr_retry_count;
    agreement_.responder_resources = rep.initiator_depth;
    agreement_.initiator_depth = rep.responder_resources;
    const std::uint8_t lifetime =
        agreement_.ack_timeout > 0 ? static_cast<std::uint8_t>(agreement_.ack_timeout - 1) : 0;
    agreement_.ack_timeout = ack_timeout(rep.target_ack_delay, lifetime);
    state_ = RepReceived{};
    emit(Replied{rep});
  } else if (const auto* closed = std::get_if<Closed>(&state_)) {
    wire::CmRej rej = closed->refusal.value_or(make_rej(CmAnswered::Rep, RejReason::InvalidCommId, {}));
    rej.remote_id = rep.local_id;
    send(rej);  // or the peer would wait for an RTU
  } else if (rep.local_id != remote_id_) {
    return;  // not the peer of this connection
  } else if (std::holds_alternative<RepReceived>(state_)) {
    send_mra(CmAnswered::Rep);
  } else if (is_established()) {
    send(wire::CmRtu{.local_id = me_.local_id, .remote_id = remote_id_});  // the first one was lost
  }
}

void Connection::on_body(Instant now, const wire::CmRtu& rtu) {
  if (rtu.local_id != remote_id_) return;
  if (std::holds_alternative<RepSent>(state_)) static_cast<void>(notify_established(now));
  // Given up here, for want of an answer, while the peer believes that it stands.
  if (std::holds_alternative<Closed>(state_)) send_rej(CmAnswered::Other, RejReason::InvalidCommId, {});
}

void Connection::on_body(Instant now, const wire::CmDreq& dreq) {
  if (dreq.local_id != remote_id_ || dreq.remote_qpn != local_qpn_) return;
  if (is_answering() || std::holds_alternative<ReqSent>(state_)) return;
  send_drep(received_tid_);
  if (std::holds_alternative<Timewait>(state_) || std::holds_alternative<Closed>(state_)) return;
  // The peer was established, whatever became of its RTU.
  if (std::holds_alternative<RepSent>(state_)) emit(BecameEstablished{});
  end(now, 0);
}

void Connection::on_body(Instant now, const wire::CmDrep& drep) {
  if (drep.local_id == remote_id_ && std::holds_alternative<DreqSent>(state_)) end(now, 0);
}

void Connection::on_unreachable(Instant now) {
  if (auto* asked = std::get_if<ReqSent>(&state_)) {
    asked->question.on_refused(now);
  } else if (is_established() || std::holds_alternative<DreqSent>(state_)) {
    end(now, 0);
  } else if (!std::holds_alternative<Timewait>(state_) && !std::holds_alternative<Closed>(state_)) {
    refuse(now, {.reason = RejReason::Timeout});  // as if it had said so when it died
  }
}

void Connection::on_impossible_service(Instant now) {
  if (!awaits_reply()) return;
  outbox_.clear();
  refuse(now, {.reason = RejReason::InvalidServiceId});
}

void Connection::on_unsendable(int errno_value) {
  if (awaits_reply()) give_up({.status = -errno_value});
}

void Connection::on_deadline(Instant now) {
  using Verdict = Question::Verdict;
  if (auto* asked = std::get_if<ReqSent>(&state_)) {
    const Verdict verdict = asked->question.on_deadline(now);
    if (verdict == Verdict::Ask) send(asked->request);
    if (verdict == Verdict::NobodyThere) refuse(now, {.reason = RejReason::InvalidServiceId});
    if (verdict == Verdict::NoAnswer) give_up();
  } else if (auto* replied = std::get_if<RepSent>(&state_)) {
    const Verdict verdict = replied->question.on_deadline(now);
    if (verdict == Verdict::Ask) send(replied->reply);
    if (verdict == Verdict::NoAnswer) give_up();
  } else if (auto* ending = std::get_if<DreqSent>(&state_)) {
    const Verdict verdict = ending->question.on_deadline(now);
    if (verdict == Verdict::Ask) send_dreq();
    if (verdict == Verdict::NoAnswer) end(now, -ETIMEDOUT);
  } else if (const auto* waiting = std::get_if<Timewait>(&state_); waiting != nullptr && now >= waiting->until) {
    state_ = Closed{};
    emit(TimewaitExited{});
  }
}

std::optional<CmMessage> Connection::next_message() {
  return take_front(outbox_);
}

std::optional<ConnectionEvent> Connection::next_event() {
  return take_front(events_);
}

std::optional<Instant> Connection::next_deadline() const {
  if (const auto* asked = std::get_if<ReqSent>(&state_)) return asked->question.deadline();
  if (const auto* replied = std::get_if<RepSent>(&state_)) return replied->question.deadline();
  if (const auto* ending = std::get_if<DreqSent>(&state_)) return ending->question.deadline();
  if (const auto* waiting = std::get_if<Timewait>(&state_)) return waiting->until;
  return std::nullopt;
}

bool Connection::is_probeable() const {
  const auto* asked = std::get_if<ReqSent>(&state_);
  return is_established() || (asked != nullptr && asked->is_patient);
}

bool Connection::has_accepted() const {
  const auto* established = std::get_if<Established>(&state_);
  return established != nullptr && established->reply.has_value();
}

bool Connection::owes_farewell() const {
  return !std::holds_alternative<DreqSent>(state_) && !std::holds_alternative<Timewait>(state_) &&
         !std::holds_alternative<Closed>(state_);
}

queue::Qpn Connection::occupied_qpn() const {
  return owes_farewell() ? agreement_.remote_qpn : queue::Qpn{};
}

bool Connection::is_of_peer(const CmMessage& message) const {
  return std::visit(
      [this](const auto& body) {
        if constexpr (requires { body.local_id; })
          return body.local_id.value() != 0 && (remote_id_.value() == 0 || body.local_id == remote_id_);
        return false;
      },
      message.body);
}

// A duplicate RTU; or a duplicate REP, which a living active side answers with an RTU; or a duplicate REQ, which is
// answered with an MRA. IBTA 12.9.7.
void Connection::probe() {
  if (const auto* asked = std::get_if<ReqSent>(&state_)) send(asked->request);
  const auto* established = std::get_if<Established>(&state_);
  if (established == nullptr) return;
  if (established->reply) {
    send(*established->reply);
  } else {
    send(wire::CmRtu{.local_id = me_.local_id, .remote_id = remote_id_});
  }
}

void Connection::send_mra(CmAnswered answered) {
  send(wire::CmMra{
      .local_id = me_.local_id, .remote_id = remote_id_, .answered = answered, .service_timeout = kServiceTimeout});
}

void Connection::send_rej(CmAnswered answered, RejReason reason, std::span<const std::byte> private_data) {
  send(make_rej(answered, reason, private_data));
}

wire::CmRej Connection::make_rej(CmAnswered answered, RejReason reason, std::span<const std::byte> private_data) const {
  wire::CmRej rej{.local_id = me_.local_id, .remote_id = remote_id_, .answered = answered, .reason = reason};
  rej.private_data = wire::padded<wire::CmRej::kPrivateBytes>(private_data);
  if (reason == RejReason::Timeout) {  // additional information: whose request it was. IBTA table 109
    rej.info_bytes = sizeof me_.ca_guid;
    for (std::size_t i = 0; i < sizeof me_.ca_guid; ++i)
      rej.info[i] = static_cast<std::byte>(me_.ca_guid >> (8 * (7 - i)));
  }
  return rej;
}

void Connection::send_drep(std::uint64_t tid) {
  outbox_.push_back({tid, wire::CmDrep{.local_id = me_.local_id, .remote_id = remote_id_}});
}

void Connection::emit(const ConnectionEvent& event) {
  if (!is_abandoned_) events_.push_back(event);
}

void Connection::begin_disconnect(Instant now) {
  send_dreq();
  state_ = DreqSent{Question(now, retries_, response_wait_)};
}

void Connection::send_dreq() {
  outbox_.push_back(
      {me_.tid, wire::CmDreq{.local_id = me_.local_id, .remote_id = remote_id_, .remote_qpn = agreement_.remote_qpn}});
}

void Connection::give_up(const Unreachable& why) {
  state_ = Closed{};
  emit(why);
}

void Connection::end(Instant now, int status) {
  emit(Disconnected{status});
  wait_out(now);
}

// As the kernel does it: who has had the peer's reply, or is told of an older life, waits until what is still under way
// has died out.
void Connection::refuse(Instant now, const Rejected& rejected) {
  emit(rejected);
  if (rejected.reason == RejReason::StaleConnection || std::holds_alternative<RepReceived>(state_)) {
    wait_out(now);
  } else {
    state_ = Closed{};
  }
}

void Connection::wait_out(Instant now) {
  state_ = Timewait{now + std::min(wire_time(agreement_.ack_timeout), kTimewaitMax)};
}

}  // namespace nicless::cm
