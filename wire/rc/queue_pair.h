// SPDX-License-Identifier: MIT
// A reliable connection queue pair: requester and responder behind the engine's five calls. Either end of an extended
// reliable connection (XRC) is the same with one of the two halves only. Port-bound. IBTA 9.7, A14.
#pragma once

#include <optional>

#include "wire/qp/program_queue_pair.h"
#include "wire/rc/requester.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

class RcQueuePair final : public ProgramQueuePair {
 public:
  // transport: Rc, XrcInitiator or XrcTarget.
  explicit RcQueuePair(const QpParts& parts, Transport transport = Transport::Rc);

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_deadline(queue::Instant now) override;
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override;
  std::optional<Requester::Unanswered> unanswered() const {
    return is_requesting() ? requester_.unanswered() : std::nullopt;
  }

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override { responder_.start(); }
  void start_sending() override {
    if (has_requester()) requester_.start();
  }
  void resume_sending() override {
    requester_.apply_retry_limits();
    responder_.apply_limits();
  }
  void forget() override {  // nothing is half-arrived or owed, and nothing has failed
    responder_.start();
    requester_.forget_failure();
    requester_.stop();
  }
  void flush_inbound() override {
    responder_.flush();
    requester_.stop();
  }
  bool has_lost_completion() const override {
    return ProgramQueuePair::has_lost_completion() || responder_.has_lost_completion();
  }
  std::uint32_t next_send_psn() const override;
  std::uint32_t next_receive_psn() const override;
  bool is_drained() const override { return requester_.is_idle(); }

 private:
  bool has_requester() const { return transport_ != Transport::XrcTarget; }
  bool has_responder() const { return transport_ != Transport::XrcInitiator; }
  bool is_requesting() const { return has_requester() && is_sending(); }
  void fail_if_halves_did();

  Requester requester_;
  Responder responder_;
};

}  // namespace nicless::wire
