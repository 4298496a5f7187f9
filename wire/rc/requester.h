// SPDX-License-Identifier: MIT
// The sending half of a reliable connection: turns the send queue into request packets, and acknowledgements and
// responses into completions. Go-back-N: after a loss, sending resumes at the first packet that is missing.
// IBTA 9.7.3 to 9.7.7, 9.9. Port-bound.
#pragma once

#include <cstdint>
#include <optional>

#include "wire/counters.h"
#include "wire/qp/outbound.h"
#include "wire/qp/parts.h"
#include "wire/rc/outstanding.h"
#include "wire/rc/retry.h"
#include "wire/rc/tail_probe.h"
#include "wire/rc/window.h"

namespace nicless::wire {

class Requester {
 public:
  // While so many work requests are unanswered, one of a single packet waits until as many wait with it, or until
  // answers come: they leave in one system call, as one datagram for the kernel (UDP_SEGMENT).
  static constexpr std::uint64_t kCompanyMin = 16;

  // service: Rc or Xrc.
  Requester(Service service, const QpParts& parts, const QpAttributes& attributes, Reasons& reasons,
            QpCounters& counters);
  ~Requester() { leave_flight(); }
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  // RTR -> RTS: PSNs start at attributes.sq_psn. The send queue may hold work requests already.
  void start();
  void apply_retry_limits();  // after attributes changed without a restart

  // ACK, NAK, RNR NAK, read and atomic responses.
  void on_response(queue::Instant now, const PacketView& packet);
  void on_deadline(queue::Instant now);
  // The next request packet, if the window, the fences and the RNR wait allow one. may_begin: whether work requests not
  // begun yet may be (false in SQD).
  bool next_datagram(queue::Instant now, bool may_begin, OutDatagram& out);
  std::optional<queue::Instant> next_deadline() const {
    return queue::earliest(retry_.next_deadline(), probe_.next_deadline());
  }

  // A work request failed and was completed with its status: the queue pair goes to ERR and flushes the rest.
  bool has_failed() const { return has_failed_; }
  void forget_failure() { has_failed_ = false; }  // RESET; start() follows before anything is sent
  void stop() { leave_flight(); }                 // ERR: nothing is in flight any more
  bool is_idle() const { return acked_psn_ == outstanding_.end_psn(); }
  // What was sent and may be answered any moment: unwrapped PSNs, and when the newest of them first left. Nothing while
  // the peer has no receive for it.
  struct Unanswered {
    std::uint64_t first_psn = 0;
    std::uint64_t end_psn = 0;
    queue::Instant sent_at{};
  };
  std::optional<Unanswered> unanswered() const;
  std::uint32_t next_psn() const { return Psn::of(next_psn_).value(); }

 private:
  // Sending
  bool pass_local_requests(bool may_begin);
  bool carry_out_local(bool may_begin);
  // A fenced request waits for the reads and atomics before it. IBTA 10.8.3.3.
  bool is_fenced(const queue::Wqe& wqe) const { return wqe.fence && !read_ends_.empty(); }
  bool begin_next(bool may_begin);
  bool may_send_packet();
  bool has_company() const;
  void enter_flight();
  void leave_flight();
  bool build_packet(queue::Instant now, OutDatagram& out);
  bool build_probe(OutDatagram& out);
  bool build_message_packet(const queue::Wqe& wqe, OutDatagram& out);
  void build_read_request(const queue::Wqe& wqe, OutDatagram& out);
  void build_atomic_request(const queue::Wqe& wqe, OutDatagram& out);
  void asked_for_response(std::uint64_t packets);
  std::uint64_t next_read_packets() const;
  std::uint64_t read_packets_allowed(std::uint64_t remaining) const;
  bool fails_locally(const queue::Wqe& wqe);
  void fail_later(const queue::Wqe& wqe, const queue::SgFault& fault);
  void fail_later(queue::WcStatus status);
  Outbound::Numbers numbers(const queue::Wqe& wqe, bool wants_ack) const {
    return {service_, Psn::of(next_psn_), wants_ack, wqe.remote_srqn};
  }
  bool wants_ack_on_the_way() const;
  std::uint64_t window_packets() const { return window_.packets(parts_.flight->share()); }
  void sent(queue::Instant now, std::uint64_t packets);
  void probe(queue::Instant now);
  std::uint64_t in_flight() const { return next_psn_ > acked_psn_ ? next_psn_ - acked_psn_ : 0; }

  // Receiving
  void on_acknowledge(queue::Instant now, const PacketView& packet, std::uint64_t psn);
  void on_nak(queue::Instant now, NakCode code, std::uint64_t psn);
  void on_rnr(queue::Instant now, std::uint8_t timer, std::uint64_t psn);
  void on_data(queue::Instant now, const PacketView& packet, Family family, std::uint64_t psn);
  void accept_data(queue::Instant now, std::span<const std::byte> bytes);
  // Everything below `psn` arrived, except what still lacks its response; false when such a response is missing.
  bool advance_to(queue::Instant now, std::uint64_t psn);
  void retire_local_requests();
  void forget_answered_reads();
  void rewind(std::uint64_t psn);
  void on_missing_response(queue::Instant now, std::uint64_t newer_psn);
  void answer_gap(queue::Instant now, std::uint64_t psn, std::uint64_t newest_psn);
  bool spend_retry();  // fails the queue pair when none is left
  Window::Loss kind_of_loss() const;
  void resend_from(std::uint64_t psn, Window::Loss loss);
  void refused_as_invalid();
  void refused(queue::WcStatus status, const char* why);
  void fail(queue::WcStatus status);
  void fail_local_if_due();

  const Service service_;
  const QpParts& parts_;
  const QpAttributes& attributes_;
  Reasons& reasons_;
  QpCounters& counters_;

  Outstanding outstanding_;
  Retry retry_;
  TailProbe probe_;
  bool is_probe_due_ = false;
  Window window_;

  // acked_psn_ <= next_psn_ <= sent_psn_ <= outstanding_.end_psn(), all unwrapped
  std::uint64_t acked_psn_ = 0;      // the oldest not acknowledged
  std::uint64_t next_psn_ = 0;       // the next to send; goes back on a loss
  std::uint64_t sent_psn_ = 0;       // one past the highest ever sent: beyond it no answer makes sense
  queue::Instant sent_at_{};         // when that one was
  std::uint64_t ack_asked_psn_ = 0;  // one past the last packet that asked for an acknowledgement
  Outstanding::Position position_;   // of next_psn_
  bool is_in_flight_ = false;        // shares its port's budget
  bool is_in_run_ = false;           // what was worth sending goes on until there is no more

  // Where read requests (and atomics) end that were ever sent and are not answered yet, in order: at most
  // max_rd_atomic, going back does not make them fewer. The responder remembers as many, each as it saw it first, and
  // takes a duplicate only within one of them; so a read that is asked for again is cut at the same places.
  std::vector<std::uint64_t> read_ends_;

  Outbound outbound_;
  queue::SgCursor read_cursor_;  // where the data of read read_cursor_seq_ goes
  std::optional<std::uint64_t> read_cursor_seq_;

  // The gap that sending went back to last, and when it spent a try of retry_cnt. Of a gap in the responses also the
  // newest response that came since: what is newer still was under way already, what is older shows that the responder
  // has answered again and that the same one was lost once more.
  struct Gap {
    std::uint64_t psn = 0;
    queue::Instant spent_at{};
    std::uint64_t newest_psn = 0;
  };
  // Whatever else reports the same gap so soon costs no try more: overtaken packets and doubled NAKs do.
  static constexpr queue::Duration kGapQuiet = std::chrono::milliseconds(1);
  std::optional<Gap> gap_;

  std::optional<std::uint64_t> local_failure_seq_;  // cannot be sent; fails once all before it are done ...
  queue::WcStatus local_failure_ = queue::WcStatus::LocProtErr;  // ... with this
  bool has_failed_ = false;
};

}  // namespace nicless::wire
