// SPDX-License-Identifier: MIT
// Service id resolution, by which a program learns how to reach a datagram service: SIDR_REQ asks, SIDR_REP answers
// with a queue pair and its Q_Key. Two machines without I/O, one for each end: messages, deadlines and the program's
// wishes go in, messages and events come out. They know no address; whoever carries their messages does. IBTA 12.11.
// Thread-compatible: the caller holds the agent's lock.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <variant>

#include "cm/question.h"
#include "queue/result.h"
#include "queue/types.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

using queue::Result;

// What became of the question, for the program.
struct Resolved {  // whatever the status is; "nobody listens" may also be what the peer's host said
  wire::CmSidrRep reply;
  friend bool operator==(const Resolved&, const Resolved&) = default;
};
struct Unresolved {
  int status = -ETIMEDOUT;  // nobody answered, however often it was asked; else why it cannot be sent
  friend bool operator==(const Unresolved&, const Unresolved&) = default;
};
using Resolution = std::variant<Resolved, Unresolved>;

// The end that asks. Over once it has an event.
class SidrRequester {
 public:
  static constexpr Duration kLongestWait = wire_time(kResponseTimeout);  // for one answer

  SidrRequester(Instant now, std::uint64_t tid, const wire::CmSidrReq& request);

  void on_reply(Instant now, const wire::CmSidrRep& reply);
  // The peer's host says that nobody has the UDP port.
  void on_unreachable(Instant now);
  // As for a connection's request (connection.h).
  void on_impossible_service();
  void on_unsendable(int errno_value) { end(Unresolved{-errno_value}); }
  void on_deadline(Instant now);
  std::optional<wire::CmMessage> next_message();
  std::optional<Resolution> next_event();
  std::optional<Instant> next_deadline() const;

 private:
  void end(const Resolution& resolution);

  const wire::CmMessage message_;
  std::optional<Question> question_;  // while it is open
  bool is_to_be_sent_ = true;
  std::optional<Resolution> event_;
};

// The end that answers: keeps the answer for as long as the question may come again, since both can get lost.
class SidrResponder {
 public:
  static constexpr Duration kAnswerKept = std::chrono::seconds(70);  // 16 questions 4.3 s apart

  explicit SidrResponder(const wire::CmMessage& request);

  // Once; EINVAL after that. Request id and service are filled in here.
  Result<void> answer(Instant now, wire::CmSidrRep reply);
  void on_request();  // again: the answer is repeated, if there is one
  std::optional<wire::CmMessage> next_message();
  // When it may be forgotten: nothing before it has answered.
  std::optional<Instant> next_deadline() const { return until_; }
  std::uint64_t tid() const { return reply_.tid; }

 private:
  wire::CmMessage reply_;
  std::optional<Instant> until_;
  bool is_to_be_sent_ = false;
};

}  // namespace nicless::cm
