// SPDX-License-Identifier: MIT
// An unreliable datagram queue pair: one packet a message, to whomever the work request names. Nothing is acknowledged;
// what finds no receive, or the wrong Q_Key, vanishes. IBTA 9.8.1, 9.8.3, 10.2.5. Port-bound.
#pragma once

#include "wire/qp/unacknowledged_queue_pair.h"

namespace nicless::wire {

class UdQueuePair final : public UnacknowledgedQueuePair {
 public:
  explicit UdQueuePair(const QpParts& parts);

  bool next_datagram(queue::Instant now, OutDatagram& out) override;

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override {}
  void forget() override { start_sending(); }
  void flush_inbound() override {}
  void receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) override;

 private:
  void build_headers(const queue::Wqe& wqe, OutDatagram& out);
  bool is_own_copy(const PacketView& packet) const;
  void place(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram);

  queue::RecvWqe receive_;
  queue::SgCursor cursor_;  // over receive_
};

}  // namespace nicless::wire
