// SPDX-License-Identifier: MIT
#include "cm/sidr_table.h"

#include "queue/check.h"

namespace nicless::cm {

SidrQuestion& SidrTable::ask(RequestId id, const SidrQuestion& question) {
  const auto [place, is_new] = questions_.emplace(id, question);
  NICLESS_CHECK(is_new);
  refresh(id);
  return place->second;
}

SidrAnswer& SidrTable::take(const AnswerKey& key, const SidrAnswer& answer) {
  if (answers_.size() >= kAnswersMax) forget_oldest_answer();
  const auto [place, is_new] = answers_.emplace(key, answer);
  NICLESS_CHECK(is_new);
  refresh(key);
  return place->second;
}

// Those that the program has still to answer have no deadline, and are as few as its backlog.
void SidrTable::forget_oldest_answer() {
  if (const auto oldest = answer_deadlines_.due(Instant::max())) erase(*oldest);
}

void SidrTable::refresh(RequestId id) {
  if (const SidrQuestion* question = find(id)) question_deadlines_.set(id, question->requester.next_deadline());
}

void SidrTable::refresh(const AnswerKey& key) {
  if (const SidrAnswer* answer = find(key)) answer_deadlines_.set(key, answer->responder.next_deadline());
}

void SidrTable::erase(RequestId id) {
  questions_.erase(id);
  question_deadlines_.erase(id);
}

void SidrTable::erase(const AnswerKey& key) {
  const AnswerKey own = key;  // it may stand in what goes
  answers_.erase(own);
  answer_deadlines_.erase(own);
}

SidrQuestion* SidrTable::find(RequestId id) {
  const auto place = questions_.find(id);
  return place == questions_.end() ? nullptr : &place->second;
}

SidrAnswer* SidrTable::find(const AnswerKey& key) {
  const auto place = answers_.find(key);
  return place == answers_.end() ? nullptr : &place->second;
}

std::vector<SidrTable::RequestId> SidrTable::asked(const wire::Endpoint& remote) const {
  std::vector<RequestId> asked;
  for (const auto& [id, question] : questions_)
    if (question.path.remote == remote) asked.push_back(id);
  return asked;
}

std::optional<Instant> SidrTable::next_deadline() const {
  return queue::earliest(question_deadlines_.next(), answer_deadlines_.next());
}

}  // namespace nicless::cm
