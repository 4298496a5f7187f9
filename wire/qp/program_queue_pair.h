// SPDX-License-Identifier: MIT
// A queue pair as a program sees it, of any transport: its state, its attributes, what may be posted, and what happens
// to outstanding work on the way to ERR and RESET. The transports derive from it and add what goes over the wire.
// See ibv_modify_qp(3); IBTA 10.3. Port-bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "queue/result.h"
#include "wire/qp/attributes.h"
#include "wire/qp/parts.h"
#include "wire/qp/transport.h"
#include "wire/queue_pair.h"

namespace nicless::wire {

// Device limits.
inline constexpr std::uint8_t kRdAtomicMax = 16;  // max_qp_rd_atom, max_qp_init_rd_atom
inline constexpr std::uint16_t kPathMtuBytesMax = 4096;

class ProgramQueuePair : public QueuePair {
 public:
  ProgramQueuePair(const ProgramQueuePair&) = delete;
  ProgramQueuePair& operator=(const ProgramQueuePair&) = delete;

  Transport transport() const { return transport_; }
  Service service() const { return service_of(transport_); }
  QpState state() const { return attributes_.state; }
  // As ibv_query_qp gives them: the PSNs are the ones that come next.
  QpAttributes attributes() const;
  const QpCounters& counters() const { return counters_; }
  const QpCounters* find_counters() const override { return &counters_; }

  // ibv_modify_qp. EINVAL with the sentence; on success the caller calls Engine::on_post, as packets may be due.
  queue::Result<void> modify(queue::Instant now, const QpAttributes& wanted, std::uint32_t mask);

  // Whether ibv_post_send and ibv_post_recv are allowed now: sends in RTS, SQD and ERR (where they are flushed at
  // once), receives in every state but RESET. EINVAL with the sentence.
  queue::Result<void> check_post_send(const queue::Wqe& request) const;
  queue::Result<void> check_post_recv() const;
  void on_recv_posted();  // in ERR: flushes it

  void on_post(queue::Instant now) override;

  // It is out of its engine, and about to go: room that it holds in an SRQ comes back. The caller keeps SRQs from going
  // meanwhile.
  void leave() { forget(); }

  // Sentences about what went wrong since the last call, oldest first: the caller logs them (docs/ERRORS.md).
  std::vector<std::string> take_reasons() { return reasons_.take(); }

 protected:
  ProgramQueuePair(Transport transport, const QpParts& parts);

  // What the transports add.
  virtual queue::Result<void> check_opcode(const queue::Wqe& request) const = 0;
  virtual void start_receiving() = 0;               // INIT -> RTR
  virtual void start_sending() = 0;                 // RTR -> RTS
  virtual void resume_sending() {}                  // SQD -> SQD or RTS, with attributes that may have changed
  virtual void forget() = 0;                        // -> RESET
  virtual void flush_inbound() = 0;                 // -> ERR: completes a receive that a half-arrived message had taken
  virtual std::uint32_t next_send_psn() const = 0;  // in RTS and SQD
  virtual std::uint32_t next_receive_psn() const { return attributes_.rq_psn; }  // from RTR on; a datagram has none

  bool is_sending() const { return state() == QpState::Rts || state() == QpState::Sqd; }
  bool is_receiving() const { return is_sending() || state() == QpState::Rtr || state() == QpState::Sqe; }
  void enter_error();
  // A queue pair whose completion an overrun CQ could not take: IBV_EVENT_QP_FATAL, once, and ERR. Called after
  // whatever may have completed something. IBTA 11.6.3.2, Local Work Queue Catastrophic Error.
  void fail_if_cq_overran();
  virtual bool has_lost_completion() const;
  // An unreliable transport's own send failed: the send queue flushes and waits in SQE, receiving goes on.
  // IBTA 10.3.1.5.
  void enter_send_error();
  // IBV_EVENT_SQ_DRAINED, if SQD was entered with en_sqd_async_notify and nothing is under way any more.
  void tell_if_drained();
  virtual bool is_drained() const { return true; }
  // IBV_EVENT_COMM_EST, once: the peer was faster than our own RTR -> RTS. IBTA 11.6.3.1.
  void note_established();

  const Transport transport_;
  const QpParts parts_;
  QpAttributes attributes_;
  Reasons reasons_;
  QpCounters counters_;

 private:
  void enter(QpState from, QpState to);
  void reset();
  void flush_sends();

  bool is_established_ = false;      // COMM_EST was raised, or is not due
  bool is_drain_event_due_ = false;  // SQD was entered with en_sqd_async_notify
  bool is_fatal_ = false;            // QP_FATAL was raised
};

}  // namespace nicless::wire
