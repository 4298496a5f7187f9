// SPDX-License-Identifier: MIT
// An unreliable connection queue pair: messages of many packets, nothing acknowledged. A message that lacks a packet is
// dropped without a word, and the next one arrives whole. IBTA 9.8.2. Port-bound.
#pragma once

#include <cstdint>

#include "wire/qp/inbound.h"
#include "wire/qp/unacknowledged_queue_pair.h"

namespace nicless::wire {

class UcQueuePair final : public UnacknowledgedQueuePair {
 public:
  explicit UcQueuePair(const QpParts& parts);

  bool next_datagram(queue::Instant now, OutDatagram& out) override;

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override;
  void start_sending() override;
  void forget() override;
  void flush_inbound() override { inbound_.flush(); }
  bool is_drained() const override { return packet_ == 0 && UnacknowledgedQueuePair::is_drained(); }
  std::uint32_t next_receive_psn() const override { return expected_psn_.value(); }
  void receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) override;

 private:
  bool carry_out_local(const queue::Wqe& wqe);
  void on_request(const PacketView& packet, const OpcodeInfo& info);

  Inbound inbound_;
  Psn expected_psn_;
  bool is_dropping_ = false;      // until the next message begins
  std::uint64_t packet_seq_ = 0;  // the work request being sent ...
  std::uint64_t packet_ = 0;      // ... and the next of its packets
};

}  // namespace nicless::wire
