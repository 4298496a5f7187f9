// SPDX-License-Identifier: MIT
// Every resolution of a datagram service of the process between its messages and its owners, as Switchboard has its
// connections: which question an answer is for, which request came before, who is to be told what, what is to be sent
// along which path, and when. No I/O: what has to leave is taken with next_message() and next_event() before the
// agent's lock is released. Called with the agent's lock held.
//
//   on_message(now, ...)   on_unreachable(now, ...)   on_deadline(now)   next_message()   next_event() next_deadline()
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "cm/sidr_table.h"

namespace nicless::cm {

class Resolutions {
 public:
  using RequestId = SidrTable::RequestId;
  using AnswerKey = SidrTable::AnswerKey;
  struct Told {
    CmId* owner;
    Resolution resolution;
  };

  // The request's id must be new here. The owner is told once, unless it withdraws. Port 0 is nobody's, and not asked.
  void ask(Instant now, std::uint64_t tid, const wire::CmSidrReq& request, const MadPath& path, CmId* owner);
  bool knows(RequestId id) { return table_.find(id) != nullptr; }
  void withdraw(RequestId id);

  // A request that on_message() has found to be new. Either its owner answers, once, and the service's port stays open
  // until then; or nobody does: it is refused and forgotten.
  AnswerKey take(const wire::CmMessage& request, const MadPath& path, CmId* owner, std::shared_ptr<void> port = {});
  Result<void> answer(Instant now, const AnswerKey& key, const wire::CmSidrRep& reply);
  void refuse(const wire::CmMessage& request, const MadPath& path);

  // False: the message is no answer and no repeated request; nothing has happened.
  bool on_message(Instant now, const MadPath& path, const wire::CmMessage& message);
  // Nobody has the UDP port `remote`.
  void on_unreachable(Instant now, const wire::Endpoint& remote);
  // A message of next_message() that the operating system has refused for good.
  void on_unsendable(const wire::CmMessage& message, int errno_value);
  void on_deadline(Instant now);
  std::optional<OutgoingMad> next_message();
  std::optional<Told> next_event();
  std::optional<Instant> next_deadline() const { return table_.next_deadline(); }

 private:
  void on_reply(Instant now, const wire::Gid& from, const wire::CmSidrRep& reply);
  bool is_repeated(const AnswerKey& key, const wire::CmMessage& request);
  void pump(RequestId id);
  void pump(SidrAnswer& answer);

  SidrTable table_;
  std::deque<OutgoingMad> outbox_;
  std::deque<Told> told_;
};

}  // namespace nicless::cm
