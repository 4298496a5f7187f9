// SPDX-License-Identifier: MIT
// A queue pair whose packets nobody acknowledges: what unreliable connections and unreliable datagrams have in common.
// A send is done when it has left, a fault of the sender's own list ends in SQE, and nothing waits for a deadline.
// IBTA 9.8, 10.3.1.5. Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/qp/outbound.h"
#include "wire/qp/program_queue_pair.h"
#include "wire/qp/unacknowledged.h"

namespace nicless::wire {

class UnacknowledgedQueuePair : public ProgramQueuePair {
 public:
  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) final;
  void on_deadline(queue::Instant) final {}
  std::optional<queue::Instant> next_deadline() const final { return std::nullopt; }
  void on_sent() final;

 protected:
  UnacknowledgedQueuePair(Transport transport, const QpParts& parts);

  // A packet of this transport, in a state that receives.
  virtual void receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) = 0;

  void start_sending() override;
  bool is_drained() const override { return sends_.is_everything_sent(); }
  std::uint32_t next_send_psn() const override { return next_psn_.value(); }
  Psn take_psn();
  // The work request whose turn it is completes with this once all before it have left.
  void fail_send(const queue::Wqe& wqe, const queue::SgFault& fault);
  void fail_send(queue::WcStatus status);
  bool fails_by_force(const queue::Wqe& wqe);  // Wqe::forced_status; then it is done with

  Outbound outbound_;
  Unacknowledged sends_;

 private:
  Psn next_psn_;
};

}  // namespace nicless::wire
