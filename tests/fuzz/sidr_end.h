// SPDX-License-Identifier: MIT
// The datagram services of one host for the fuzzer of management datagrams: resolutions that programs ask for, and
// requests that they answer, as the agent of a process carries them. A question ends once.
#pragma once

#include <deque>
#include <set>
#include <utility>

#include "cm/messages.h"
#include "cm/sidr_table.h"
#include "tests/fuzz/input.h"

namespace nicless::fuzz {

class SidrEnd {
 public:
  using Outgoing = std::pair<cm::MadPath, wire::CmMessage>;

  void ask(queue::Instant now, std::uint32_t id, std::uint64_t tid, const cm::MadPath& path) {
    wire::CmSidrReq request =
        cm::build_sidr_request(wire::PortSpace::Udp, {path.local, path.remote.port}, path.remote, {});
    request.request_id = id;
    table_.ask(id, {cm::SidrRequester(now, tid, request), path, nullptr});
    open_.insert(id);
    pump_question(id);
  }
  bool knows(std::uint32_t id) { return table_.find(id) != nullptr; }

  // The program answers its oldest request.
  void answer(queue::Instant now, bool refuses) {
    if (waiting_.empty()) return;
    const auto key = waiting_.front();
    waiting_.pop_front();
    cm::SidrAnswer& answer = *table_.find(key);
    const auto reply = refuses ? cm::build_sidr_refusal({}) : cm::build_sidr_reply(queue::Qpn(0x99), 0x1234567, {});
    require(answer.responder.answer(now, reply).has_value(), "an answer was refused");
    answer.owner = nullptr;
    pump_answer(answer);
    table_.refresh(key);
  }

  // False: it is none of these, or nobody's.
  bool on_message(queue::Instant now, const cm::MadPath& path, const wire::CmMessage& message) {
    if (const auto* reply = std::get_if<wire::CmSidrRep>(&message.body)) {
      cm::SidrQuestion* question = table_.find(reply->request_id);
      if (question == nullptr || question->path.remote.address != path.remote.address) return true;
      question->requester.on_reply(now, *reply);
      pump_question(reply->request_id);
      return true;
    }
    const auto* request = std::get_if<wire::CmSidrReq>(&message.body);
    if (request == nullptr || !request->cma()) return false;
    const cm::SidrTable::AnswerKey key{path.remote.address, request->request_id};
    if (cm::SidrAnswer* known = table_.find(key)) {
      if (known->responder.tid() == message.tid || known->owner != nullptr) {
        known->responder.on_request();
        pump_answer(*known);
        return true;
      }
      table_.erase(key);
    }
    if (waiting_.size() >= kBacklog) return true;
    table_.take(key, {cm::SidrResponder(message), path, reinterpret_cast<cm::CmId*>(this)});
    waiting_.push_back(key);
    return true;
  }

  void on_unreachable(queue::Instant now, const wire::Endpoint& remote) {
    for (const auto id : table_.asked(remote)) {
      table_.find(id)->requester.on_unreachable(now);
      pump_question(id);
    }
  }

  void on_deadline(queue::Instant now) {
    while (const auto id = table_.due_question(now)) {
      table_.find(*id)->requester.on_deadline(now);
      pump_question(*id);
    }
    while (const auto key = table_.due_answer(now)) table_.erase(*key);
  }

  std::optional<queue::Instant> next_deadline() const { return table_.next_deadline(); }

  std::optional<Outgoing> next_message() {
    if (outbox_.empty()) return std::nullopt;
    Outgoing next = std::move(outbox_.front());
    outbox_.pop_front();
    return next;
  }

  // The programs leave: requests are refused, and questions need no answer any more.
  void leave(queue::Instant now) {
    while (!waiting_.empty()) answer(now, true);
    for (const auto id : open_) table_.erase(id);
    open_.clear();
  }

 private:
  static constexpr std::size_t kBacklog = 8;

  void pump_question(std::uint32_t id) {
    cm::SidrQuestion& question = *table_.find(id);
    while (const auto message = question.requester.next_message()) outbox_.push_back({question.path, *message});
    if (!question.requester.next_event()) return table_.refresh(id);
    table_.erase(id);
    require(open_.erase(id) == 1, "a question ends twice");
  }
  void pump_answer(cm::SidrAnswer& answer) {
    while (const auto message = answer.responder.next_message()) outbox_.push_back({answer.path, *message});
  }

  cm::SidrTable table_;
  std::deque<cm::SidrTable::AnswerKey> waiting_;  // for the program
  std::set<std::uint32_t> open_;
  std::deque<Outgoing> outbox_;
};

}  // namespace nicless::fuzz
