// SPDX-License-Identifier: MIT
// One connection as the connection manager sees it: REQ, REP, RTU, REJ, MRA, DREQ, DREP with retries, duplicates and
// timewait. A state machine without I/O: messages, deadlines and the program's wishes go in, messages and events come
// out. It knows no address; whoever carries its messages does. IBTA 12.9 (state diagrams 12.9.5 to 12.9.8).
//
//   active:   ReqSent -> RepReceived -> Established -> DreqSent -> Timewait -> Closed
//   passive:  ReqReceived -> RepSent -> Established -> ...
//
// The five calls: on_message(now), a wish of the program (now), on_deadline(now), next_message(), next_deadline();
// what the program has to be told comes from next_event(). Thread-compatible: the caller holds the agent's lock.
#pragma once

#include <cerrno>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <variant>

#include "cm/question.h"
#include "cm/timeouts.h"
#include "queue/result.h"
#include "queue/types.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

using queue::Result;
using wire::CommId;

// What this end calls itself. tid: of the exchanges it begins (REQ, DREQ).
struct Identity {
  CommId local_id{};
  std::uint64_t tid = 0;
  std::uint64_t ca_guid = 0;
};

// What both ends agreed on: the queue pair's attributes. IBTA 12.7; complete once a REP was sent or received.
struct Agreement {
  queue::Qpn remote_qpn{};
  wire::Psn rq_psn{};  // what this end announced: the peer starts there
  wire::Psn sq_psn{};  // what the peer announced
  std::uint8_t path_mtu = 0;
  std::uint8_t ack_timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t responder_resources = 0;  // reads and atomics this end takes at once
  std::uint8_t initiator_depth = 0;      // and may have under way
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;
  friend bool operator==(const Agreement&, const Agreement&) = default;
};

// What happened, for the program; rdma_get_cm_event(3) has the names.
struct Replied {  // CONNECT_RESPONSE: establish() or reject() comes next
  wire::CmRep reply;
  friend bool operator==(const Replied&, const Replied&) = default;
};
struct BecameEstablished {
  friend bool operator==(const BecameEstablished&, const BecameEstablished&) = default;
};
struct Rejected {
  wire::RejReason reason{};
  wire::PrivateData<wire::CmRej::kPrivateBytes> private_data{};
  friend bool operator==(const Rejected&, const Rejected&) = default;
};
struct Unreachable {
  int status = -ETIMEDOUT;  // nobody answered the REQ or REP, however often it was sent; else why it cannot be sent
  friend bool operator==(const Unreachable&, const Unreachable&) = default;
};
struct Disconnected {
  int status = 0;  // -ETIMEDOUT: nobody answered the DREQ
  friend bool operator==(const Disconnected&, const Disconnected&) = default;
};
struct TimewaitExited {
  friend bool operator==(const TimewaitExited&, const TimewaitExited&) = default;
};
using ConnectionEvent = std::variant<Replied, BecameEstablished, Rejected, Unreachable, Disconnected, TimewaitExited>;

class Connection {
 public:
  // The active side: sends `request`, whose local id and GUID are filled in here.
  static Connection connect(Instant now, const Identity& me, wire::CmReq request);
  // The passive side: `request` has arrived; the program will accept() or reject().
  static Connection answer(const Identity& me, const wire::CmMessage& request);

  // The program's wishes. EINVAL where the state has no place for one.
  Result<void> accept(Instant now, wire::CmRep reply);  // ids and GUID are filled in here
  Result<void> reject(wire::RejReason reason, std::span<const std::byte> private_data);
  Result<void> establish();                      // the active side's queue pair is ready: RTU
  Result<void> notify_established(Instant now);  // data came before the RTU; EISCONN if that is known
  // Never fails: with nothing to end it does nothing. IBTA 12.9.7.
  void disconnect(Instant now);
  // The program has forgotten the connection: the peer is told, no events any more. Keep it until is_finished(), so
  // that a duplicate of an old message does not look like a new one.
  void abandon(Instant now);

  void on_message(Instant now, const wire::CmMessage& message);
  // The peer's process is gone: nobody has the UDP port any more.
  void on_unreachable(Instant now);
  // The request is for a service that nobody can have: it is refused as the peer would do it, at once.
  void on_impossible_service(Instant now);
  // The request was not sent, and will not be: this machine does not let it out. Other messages are as good as lost.
  void on_unsendable(int errno_value);
  void on_deadline(Instant now);
  std::optional<wire::CmMessage> next_message();
  std::optional<ConnectionEvent> next_event();
  std::optional<Instant> next_deadline() const;

  CommId local_id() const { return me_.local_id; }
  CommId remote_id() const { return remote_id_; }
  const Agreement& agreement() const { return agreement_; }
  bool is_established() const { return std::holds_alternative<Established>(state_); }
  bool is_answering() const { return std::holds_alternative<ReqReceived>(state_); }
  bool awaits_reply() const { return std::holds_alternative<ReqSent>(state_); }
  // The peer may ask again: the request is not answered, or the answer not confirmed.
  bool is_unconfirmed() const { return is_answering() || std::holds_alternative<RepSent>(state_); }
  // Waits for the peer without a deadline of its own: established, or told by an MRA to be patient.
  bool is_probeable() const;
  // Stands, and this is the passive end of it.
  bool has_accepted() const;
  // The peer's queue pair, which can have no other connection: while this one stands or is being made. 0: none.
  queue::Qpn occupied_qpn() const;
  // Names both ends of this connection; or only this one, while the peer's is not known yet.
  bool is_of_peer(const wire::CmMessage& message) const;
  // The peer would wait in vain if this end ended without a word.
  bool owes_farewell() const;
  // Nothing more will come of it.
  bool is_finished() const { return std::holds_alternative<Closed>(state_) && outbox_.empty(); }
  // A message that changes nothing at a living peer; a dead one answers it with an ICMP message.
  void probe();

 private:
  struct ReqSent {
    wire::CmReq request;
    Question question;
    bool is_patient = false;  // an MRA came
  };
  struct ReqReceived {};
  struct RepReceived {};
  struct RepSent {
    wire::CmRep reply;
    Question question;
  };
  struct Established {
    std::optional<wire::CmRep> reply;  // the passive side's, for probe()
  };
  struct DreqSent {
    Question question;
  };
  struct Timewait {
    Instant until;
  };
  struct Closed {
    std::optional<wire::CmRej> refusal{};  // of the reply, for when that comes again
  };
  using State = std::variant<ReqSent, ReqReceived, RepReceived, RepSent, Established, DreqSent, Timewait, Closed>;

  Connection(const Identity& me, const State& state) : me_(me), state_(state) {}

  void on_body(Instant now, const wire::CmReq& req);
  void on_body(Instant now, const wire::CmMra& mra);
  void on_body(Instant now, const wire::CmRej& rej);
  void on_body(Instant now, const wire::CmRep& rep);
  void on_body(Instant now, const wire::CmRtu& rtu);
  void on_body(Instant now, const wire::CmDreq& dreq);
  void on_body(Instant now, const wire::CmDrep& drep);
  template <typename Other>
  void on_body(Instant, const Other&) {}  // not of a connection

  void send(const wire::CmMessage::Body& body) { outbox_.push_back({exchange_tid_, body}); }
  void send_mra(wire::CmAnswered answered);
  wire::CmRej make_rej(wire::CmAnswered answered, wire::RejReason reason,
                       std::span<const std::byte> private_data) const;
  void send_rej(wire::CmAnswered answered, wire::RejReason reason, std::span<const std::byte> private_data);
  void send_drep(std::uint64_t tid);
  void emit(const ConnectionEvent& event);
  void begin_disconnect(Instant now);
  void end(Instant now, int status);                   // DISCONNECTED, then timewait
  void refuse(Instant now, const Rejected& rejected);  // REJECTED, closed, perhaps after timewait
  void wait_out(Instant now);                          // timewait
  void send_dreq();
  void give_up(const Unreachable& why = {});  // UNREACHABLE, closed

  Identity me_;
  State state_;
  CommId remote_id_{};
  std::uint64_t exchange_tid_ = 0;  // of the REQ, which its answers repeat
  std::uint64_t received_tid_ = 0;  // of the message being looked at
  queue::Qpn local_qpn_{};
  Duration response_wait_{};
  std::uint8_t retries_ = kMaxCmRetries;
  bool is_abandoned_ = false;
  Agreement agreement_;
  std::deque<wire::CmMessage> outbox_;
  std::deque<ConnectionEvent> events_;
};

}  // namespace nicless::cm
