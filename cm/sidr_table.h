// SPDX-License-Identifier: MIT
// Every resolution of a datagram service that this process has begun or is answering, found by what a message carries:
// the request id, at the answering end together with the asker's address; and by deadline. Called with the agent's lock
// held.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cm/connection_table.h"
#include "cm/sidr.h"
#include "queue/deadlines.h"

namespace nicless::cm {

struct SidrQuestion {
  SidrRequester requester;
  MadPath path;
  CmId* owner;
};

struct SidrAnswer {
  SidrResponder responder;
  MadPath path;
  CmId* owner;                            // null once it has been given
  std::shared_ptr<void> listener_port{};  // open until then, as that of a connection (connection_table.h)
};

class SidrTable {
 public:
  using RequestId = std::uint32_t;
  // Anybody may ask, under any name: of the answers that have been given so many are kept, the newest. A question whose
  // answer was forgotten is a new one.
  static constexpr std::size_t kAnswersMax = 4096;
  struct AnswerKey {
    wire::Gid asker;
    RequestId id = 0;
    friend auto operator<=>(const AnswerKey&, const AnswerKey&) = default;
  };

  // The key must be new here.
  SidrQuestion& ask(RequestId id, const SidrQuestion& question);
  SidrAnswer& take(const AnswerKey& key, const SidrAnswer& answer);
  // After any call to the machine: its deadline may have changed.
  void refresh(RequestId id);
  void refresh(const AnswerKey& key);
  void erase(RequestId id);
  void erase(const AnswerKey& key);

  SidrQuestion* find(RequestId id);
  SidrAnswer* find(const AnswerKey& key);
  // Open questions to that endpoint: few and for a short time, so all are looked at.
  std::vector<RequestId> asked(const wire::Endpoint& remote) const;

  std::optional<Instant> next_deadline() const;
  std::optional<RequestId> due_question(Instant now) const { return question_deadlines_.due(now); }
  std::optional<AnswerKey> due_answer(Instant now) const { return answer_deadlines_.due(now); }

 private:
  void forget_oldest_answer();

  std::map<RequestId, SidrQuestion> questions_;
  std::map<AnswerKey, SidrAnswer> answers_;
  queue::Deadlines<RequestId> question_deadlines_;
  queue::Deadlines<AnswerKey> answer_deadlines_;
};

}  // namespace nicless::cm
