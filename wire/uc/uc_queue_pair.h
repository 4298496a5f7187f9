// SPDX-License-Identifier: MIT
// An unreliable connection queue pair: messages of many packets, nothing acknowledged. A message that lacks a packet is
// dropped without a word, and the next one arrives whole. IBTA 9.8.2. Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/qp/inbound.h"
#include "wire/qp/outbound.h"
#include "wire/qp/program_queue_pair.h"
#include "wire/qp/unacknowledged.h"

namespace nicless::wire {

class UcQueuePair final : public ProgramQueuePair {
 public:
  explicit UcQueuePair(const QpParts& parts);

  QpAttributes attributes() const override;

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_deadline(queue::Instant) override {}
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override { return std::nullopt; }
  void on_sent() override;

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override;
  void start_sending() override;
  void forget() override;
  void flush_inbound() override { inbound_.flush(); }

 private:
  void on_request(const PacketView& packet, const OpcodeInfo& info);

  Inbound inbound_;
  Outbound outbound_;
  Psn expected_psn_;
  bool is_dropping_ = false;  // until the next message begins
  Psn next_psn_;
  Unacknowledged sends_;
  std::uint64_t packet_seq_ = 0;  // the work request being sent ...
  std::uint64_t packet_ = 0;      // ... and the next of its packets
};

}  // namespace nicless::wire
