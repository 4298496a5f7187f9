// SPDX-License-Identifier: MIT
// An unreliable datagram queue pair: one packet a message, to whomever the work request names. Nothing is acknowledged;
// what finds no receive, or the wrong Q_Key, vanishes. IBTA 9.8.1, 9.8.3, 10.2.5. Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/qp/outbound.h"
#include "wire/qp/program_queue_pair.h"
#include "wire/qp/unacknowledged.h"

namespace nicless::wire {

class UdQueuePair final : public ProgramQueuePair {
 public:
  explicit UdQueuePair(const QpParts& parts);

  QpAttributes attributes() const override;

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_deadline(queue::Instant) override {}
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override { return std::nullopt; }
  void on_sent() override;

 protected:
  queue::Result<void> check_opcode(const queue::Wqe& request) const override;
  void start_receiving() override {}
  void start_sending() override;
  void forget() override { start_sending(); }
  void flush_inbound() override {}

 private:
  void fail_send(queue::WcStatus status);
  void build_headers(const queue::Wqe& wqe, OutDatagram& out);
  void receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram);

  Outbound outbound_;
  Unacknowledged sends_;
  std::uint32_t next_psn_ = 0;
  queue::RecvWqe receive_;
};

}  // namespace nicless::wire
