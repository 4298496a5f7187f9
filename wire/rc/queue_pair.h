// SPDX-License-Identifier: MIT
// A reliable connection queue pair: requester and responder behind the engine's five calls. Port-bound. IBTA 9.7.
#pragma once

#include <optional>

#include "wire/qp/program_queue_pair.h"
#include "wire/rc/requester.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

class RcQueuePair final : public ProgramQueuePair {
 public:
  explicit RcQueuePair(const QpParts& parts);

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_deadline(queue::Instant now) override;
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override;

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override { responder_.start(); }
  void start_sending() override { requester_.start(); }
  void resume_sending() override { requester_.apply_retry_limits(); }
  void forget() override { responder_.start(); }  // nothing is half-arrived or owed
  void flush_inbound() override { responder_.flush(); }
  std::uint32_t next_send_psn() const override { return requester_.next_psn(); }
  std::uint32_t next_receive_psn() const override { return responder_.expected_psn(); }
  bool is_drained() const override { return requester_.is_idle(); }

 private:
  void fail_if_halves_did();

  Requester requester_;
  Responder responder_;
};

}  // namespace nicless::wire
