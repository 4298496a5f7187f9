// SPDX-License-Identifier: MIT
// Receiving: what acknowledgements, NAKs, responses and deadlines mean for what was sent.
#include <algorithm>

#include "queue/check.h"
#include "queue/format.h"
#include "wire/rc/requester.h"

namespace nicless::wire {

using queue::SendOpcode;
using queue::WcStatus;
using queue::Wqe;

void Requester::on_response(queue::Instant now, const PacketView& packet) {
  if (has_failed_) return;
  const std::int64_t unwrapped = unwrap(static_cast<std::int64_t>(acked_psn_), packet.headers.bth.psn);
  const auto psn = static_cast<std::uint64_t>(unwrapped);
  // Older than anything unacknowledged: an answer to a duplicate. Newer than anything sent: a ghost. IBTA 9.7.5.1.1.
  if (unwrapped < 0 || psn >= sent_psn_) return;
  const OpcodeInfo* info = find_opcode(packet.headers.bth.opcode);
  if (info->family == Family::Acknowledge) {
    on_acknowledge(now, packet, psn);
  } else {
    on_data(now, packet, info->family, psn);
  }
  fail_local_if_due();
}

void Requester::on_acknowledge(queue::Instant now, const PacketView& packet, std::uint64_t psn) {
  const Aeth& aeth = packet.headers.aeth;
  switch (aeth.kind()) {
    case Aeth::Kind::Ack:
      if (psn < acked_psn_) return;
      if (!advance_to(now, psn + 1)) on_missing_response(now, psn);
      return;
    case Aeth::Kind::Rnr:
      on_rnr(now, aeth.rnr_timer(), psn);
      return;
    case Aeth::Kind::Nak:
      on_nak(now, aeth.nak_code(), psn);
      return;
    case Aeth::Kind::Reserved:
      return;
  }
}

void Requester::on_nak(queue::Instant now, NakCode code, std::uint64_t psn) {
  if (psn < acked_psn_) return;
  if (!advance_to(now, psn)) return on_missing_response(now, psn);
  switch (code) {
    case NakCode::PsnSequenceError:
      ++counters_.sequence_naks_received;
      // An answer to what was sent before going back, unless the packet was sent again since.
      if (psn < next_psn_ && !retry_.is_waiting_for_receiver()) answer_gap(now, psn, psn);
      return;
    case NakCode::InvalidRequest:
    case NakCode::InvalidRdRequest:
      return refused_as_invalid();
    case NakCode::RemoteAccessError:
      return refused(WcStatus::RemAccessErr,
                     "the peer refused access; check rkey, address range and the access flags of its region");
    case NakCode::RemoteOperationalError:
      return refused(WcStatus::RemOpErr,
                     "the peer could not complete the request (the memory of its receive or of its region may not be "
                     "accessed)");
  }
}

void Requester::on_rnr(queue::Instant now, std::uint8_t timer, std::uint64_t psn) {
  if (psn < acked_psn_ || retry_.is_waiting_for_receiver()) return;
  if (!advance_to(now, psn)) return on_missing_response(now, psn);
  if (psn >= next_psn_) return;  // an answer to what was sent before going back
  ++counters_.rnr_received;
  if (!retry_.spend_rnr_retry()) {
    ++counters_.rnr_retries_exceeded;
    reasons_.add("%s answered RNR %u times (no receive posted there); rnr_retry is %u, 7 would wait for ever",
                 to_string(attributes_.path.remote).c_str(), retry_.limits().rnr_retry + 1u,
                 unsigned{retry_.limits().rnr_retry});
    return fail(WcStatus::RnrRetryExcErr);
  }
  rewind(psn);
  retry_.wait_for_receiver(now, timer);
  probe_.disarm();
}

void Requester::on_data(queue::Instant now, const PacketView& packet, Family family, std::uint64_t psn) {
  if (psn < acked_psn_) return;
  const bool is_missing = !advance_to(now, psn) || acked_psn_ != psn;
  if (is_missing) return on_missing_response(now, psn);
  const std::uint64_t seq = parts_.send_queue->retired();
  if (seq == outstanding_.begun_seq() || !outstanding_.at(seq).is_unanswered()) return;  // nobody asked for data here
  const Wqe& wqe = parts_.send_queue->at(seq);
  if ((family == Family::ReadResponse) != (wqe.opcode == SendOpcode::Read)) {
    reasons_.add("wr_id 0x%llx: the response is of another operation", static_cast<unsigned long long>(wqe.wr_id));
    return fail(WcStatus::BadRespErr);
  }
  if (family == Family::ReadResponse) return accept_data(now, packet.payload);
  // The program reads what was there before in its own byte order. IBTA 9.5.3; ibv_post_send(3).
  const std::uint64_t original = packet.headers.atomic_ack.original;
  accept_data(now, std::as_bytes(std::span(&original, 1)));
}

void Requester::accept_data(queue::Instant now, std::span<const std::byte> bytes) {
  const std::uint64_t seq = parts_.send_queue->retired();
  const Wqe& wqe = parts_.send_queue->at(seq);
  Outstanding::Record& record = outstanding_.at(seq);
  const std::uint64_t offset = std::uint64_t{record.answered} * attributes_.path_mtu;
  const std::uint64_t expected = std::min<std::uint64_t>(attributes_.path_mtu, wqe.length - offset);
  if (bytes.size() != expected) {
    reasons_.add("read wr_id 0x%llx: a response of %zu bytes came where %llu were due",
                 static_cast<unsigned long long>(wqe.wr_id), bytes.size(), static_cast<unsigned long long>(expected));
    return fail(WcStatus::BadRespErr);
  }
  auto fault = read_cursor_seq_ == seq
                   ? read_cursor_.refresh(*parts_.regions)
                   : read_cursor_.resolve(*parts_.regions, parts_.pd, wqe.sges, queue::kAccessLocalWrite);
  read_cursor_seq_ = seq;
  if (!fault) fault = read_cursor_.scatter(offset, bytes);
  if (fault) {
    reasons_.add("read wr_id 0x%llx: %s", static_cast<unsigned long long>(wqe.wr_id), describe(*fault).c_str());
    return fail(WcStatus::LocProtErr);
  }
  ++record.answered;
  advance_to(now, acked_psn_ + 1);
}

bool Requester::advance_to(queue::Instant now, std::uint64_t psn) {
  const std::uint64_t before = acked_psn_;
  bool is_complete = true;
  queue::SendQueue& queue = *parts_.send_queue;
  while (acked_psn_ < psn && queue.retired() < outstanding_.begun_seq()) {
    const std::uint64_t seq = queue.retired();
    const Outstanding::Record& record = outstanding_.at(seq);
    if (record.is_unanswered()) {
      acked_psn_ = record.first_psn + record.answered;
      is_complete = acked_psn_ >= psn;
      break;
    }
    acked_psn_ = std::min(psn, record.end_psn());
    if (acked_psn_ < record.end_psn()) break;
    queue.retire(WcStatus::Success, record.wants_response ? static_cast<std::uint32_t>(queue.at(seq).length) : 0);
  }
  retire_local_requests();
  if (acked_psn_ == before) return is_complete;

  forget_answered_reads();
  window_.on_acknowledged(acked_psn_ - before, parts_.flight->bytes());
  if (acked_psn_ == sent_psn_) leave_flight();
  if (next_psn_ < acked_psn_) rewind(acked_psn_);  // went back further than was needed
  retry_.on_progress(now, acked_psn_ < next_psn_);
  probe_.on_progress(now, acked_psn_, acked_psn_ < next_psn_ && retry_.limits().timeout_code != 0);
  is_probe_due_ = false;
  return is_complete;
}

// Of those that were carried out, the ones that all before them is done for.
void Requester::retire_local_requests() {
  queue::SendQueue& queue = *parts_.send_queue;
  while (queue.retired() < outstanding_.begun_seq() && outstanding_.at(queue.retired()).packets == 0) {
    queue.retire(WcStatus::Success);
  }
}

void Requester::forget_answered_reads() {
  const auto first_open = std::upper_bound(read_ends_.begin(), read_ends_.end(), acked_psn_);
  read_ends_.erase(read_ends_.begin(), first_open);
}

// Sending goes on at `psn` (not below acked_psn_). Reads whose responses were under way are asked for again from there.
void Requester::rewind(std::uint64_t psn) {
  NICLESS_DCHECK(acked_psn_ <= psn);
  next_psn_ = psn;
  ack_asked_psn_ = psn;
  probe_.on_resend();
  position_ = outstanding_.find(parts_.send_queue->retired(), psn);
}

// Something newer arrived than the response that is due at acked_psn_: an implied NAK, IBTA 9.7.5.1.1. One lost
// response is reported by every one behind it, and is answered once.
void Requester::on_missing_response(queue::Instant now, std::uint64_t newer_psn) {
  if (next_psn_ <= acked_psn_ || retry_.is_waiting_for_receiver()) return;
  if (gap_ && gap_->psn == acked_psn_ && newer_psn >= gap_->newest_psn) {
    gap_->newest_psn = newer_psn;
    return;
  }
  answer_gap(now, acked_psn_, newer_psn);
}

void Requester::answer_gap(queue::Instant now, std::uint64_t psn, std::uint64_t newest_psn) {
  const bool is_spent_for = gap_ && gap_->psn == psn && now < gap_->spent_at + kGapQuiet;
  if (!is_spent_for && !spend_retry()) return;
  gap_ = Gap{psn, is_spent_for ? gap_->spent_at : now, newest_psn};
  resend_from(psn, kind_of_loss());
}

bool Requester::spend_retry() {
  if (!retry_.spend_retry()) {
    ++counters_.retries_exceeded;
    reasons_.add(
        "no answer from %s after %u tries with an ack timeout of 2^%u * 4.096 us; is the peer alive and is its "
        "queue pair in RTR or RTS?",
        to_string(attributes_.path.remote).c_str(), retry_.limits().retry_count + 1u,
        unsigned{retry_.limits().timeout_code});
    fail(WcStatus::RetryExcErr);
    return false;
  }
  return true;
}

Window::Loss Requester::kind_of_loss() const {
  return probe_.is_delayed() ? Window::Loss::Crowd : Window::Loss::Stray;
}

void Requester::resend_from(std::uint64_t psn, Window::Loss loss) {
  ++counters_.resends;
  window_.on_loss(acked_psn_, sent_psn_, loss);
  rewind(psn);
  retry_.disarm();  // the resend arms it again
}

void Requester::on_deadline(queue::Instant now) {
  if (has_failed_) return;
  if (retry_.rnr_wait_is_over(now)) retry_.end_rnr_wait();
  if (!retry_.has_timed_out(now)) return probe(now);
  retry_.disarm();
  probe_.disarm();
  if (acked_psn_ == sent_psn_) return;
  window_.on_timeout();
  gap_.reset();
  if (spend_retry()) resend_from(acked_psn_, Window::Loss::Crowd);
}

// Silence. A read or an atomic is asked for again, from where its responses stopped; otherwise the last packet is.
void Requester::probe(queue::Instant now) {
  if (!probe_.is_due(now)) return;
  probe_.on_probe(now);
  if (read_ends_.empty()) {
    is_probe_due_ = true;
    return;
  }
  window_.on_loss(acked_psn_, sent_psn_, kind_of_loss());
  rewind(acked_psn_);
}

void Requester::fail_local_if_due() {
  // It had been sent before and was only to be sent again: the peer has it after all.
  if (local_failure_seq_ && parts_.send_queue->retired() > *local_failure_seq_) local_failure_seq_.reset();
  if (!has_failed_ && local_failure_seq_ && parts_.send_queue->retired() == *local_failure_seq_) {
    fail(local_failure_);
  }
}

void Requester::refused(WcStatus status, const char* why) {
  const Wqe& oldest = parts_.send_queue->at(parts_.send_queue->retired());
  reasons_.add("send wr_id 0x%llx: %s", static_cast<unsigned long long>(oldest.wr_id), why);
  fail(status);
}

// A NAK does not say what is invalid: the request does, or lets one guess.
void Requester::refused_as_invalid() {
  const Wqe& oldest = parts_.send_queue->at(parts_.send_queue->retired());
  const bool is_atomic = oldest.opcode == SendOpcode::CompareSwap || oldest.opcode == SendOpcode::FetchAdd;
  std::string why =
      "too long for the receive posted there, or what its qp_access_flags or its max_dest_rd_atomic do not allow";
  if (is_atomic && oldest.remote_addr % 8 != 0) {
    why = "the address of an atomic has to be a multiple of 8";
  } else if (service_ == Service::Xrc) {
    why = queue::format(
        "remote_srqn 0x%x is none of its XRC domain's SRQs, the message is too long for the receive "
        "posted there, or its queue pair does not take the operation",
        oldest.remote_srqn.value());
  }
  refused(WcStatus::RemInvReqErr, ("the peer refused the request as invalid (" + why + ")").c_str());
}

void Requester::fail(WcStatus status) {
  NICLESS_CHECK(!parts_.send_queue->empty());
  parts_.send_queue->retire(status);
  has_failed_ = true;
  retry_.disarm();
  retry_.end_rnr_wait();
  probe_.disarm();
}

}  // namespace nicless::wire
