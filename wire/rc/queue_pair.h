// SPDX-License-Identifier: MIT
// A reliable connection queue pair: requester and responder behind the engine's five calls, and ibv_modify_qp.
// Port-bound. IBTA 9.7 (reliable service), 10.3 (states).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "queue/result.h"
#include "wire/queue_pair.h"
#include "wire/rc/attributes.h"
#include "wire/rc/parts.h"
#include "wire/rc/requester.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

// Device limits of a reliable connection.
inline constexpr std::uint8_t kRdAtomicMax = 16;  // max_qp_rd_atom, max_qp_init_rd_atom
inline constexpr std::uint16_t kPathMtuBytesMax = 4096;

class RcQueuePair final : public QueuePair {
 public:
  // Packets that this queue pair dropped; only ever grow.
  struct Counters {
    std::uint64_t wrong_source = 0;   // from another address than the peer's
    std::uint64_t wrong_state = 0;    // the state takes none of this kind
    std::uint64_t wrong_service = 0;  // not of a reliable connection
    friend bool operator==(const Counters&, const Counters&) = default;
  };

  explicit RcQueuePair(const QpParts& parts);
  RcQueuePair(const RcQueuePair&) = delete;
  RcQueuePair& operator=(const RcQueuePair&) = delete;

  QpState state() const { return attributes_.state; }
  // As ibv_query_qp gives them: the PSNs are the ones that come next.
  QpAttributes attributes() const;
  const Counters& counters() const { return counters_; }

  // ibv_modify_qp. EINVAL with the sentence; on success the caller calls Engine::on_post, as packets may be due.
  queue::Result<void> modify(queue::Instant now, const QpAttributes& wanted, std::uint32_t mask);

  // Whether ibv_post_send and ibv_post_recv are allowed now: sends in RTS, SQD and ERR (where they are flushed at
  // once), receives in every state but RESET. EINVAL with the sentence.
  queue::Result<void> check_post_send(const queue::Wqe& request) const;
  queue::Result<void> check_post_recv() const;
  void on_recv_posted();  // in ERR: flushes it

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_post(queue::Instant now) override;
  void on_deadline(queue::Instant now) override;
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override;

  // Sentences about what went wrong since the last call, oldest first: the caller logs them (docs/ERRORS.md).
  std::vector<std::string> take_reasons() { return reasons_.take(); }

 private:
  queue::Result<void> check_values(const QpAttributes& wanted, std::uint32_t mask) const;
  void apply(const QpAttributes& wanted, std::uint32_t mask);
  void enter(QpState from, QpState to);
  void enter_error();
  void reset();
  void tell_if_drained();
  bool has_failed() const { return requester_.has_failed() || responder_.has_failed(); }

  QpParts parts_;
  QpAttributes attributes_;
  Reasons reasons_;
  Requester requester_;
  Responder responder_;
  Counters counters_;
  bool is_established_ = false;      // COMM_EST was raised, or is not due
  bool is_drain_event_due_ = false;  // SQD was entered with en_sqd_async_notify
};

}  // namespace nicless::wire
