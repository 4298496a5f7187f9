// SPDX-License-Identifier: MIT
// Sending: what goes out next. What comes back is in requester_responses.cpp.
#include "wire/rc/requester.h"

#include <algorithm>
#include <utility>

#include "queue/check.h"
#include "wire/rc/unwrapped.h"

namespace nicless::wire {

using queue::SendOpcode;
using queue::Wqe;

namespace {

bool is_read(const Wqe& wqe) {
  return wqe.opcode == SendOpcode::Read;
}

bool is_atomic(const Wqe& wqe) {
  return wqe.opcode == SendOpcode::CompareSwap || wqe.opcode == SendOpcode::FetchAdd;
}

// Reads and atomics are done when their response has come, and its data needs somewhere to go.
bool wants_response(const Wqe& wqe) {
  return is_read(wqe) || is_atomic(wqe);
}

constexpr std::uint64_t kAtomicBytes = 8;

}  // namespace

Requester::Requester(Service service, const QpParts& parts, const QpAttributes& attributes, Reasons& reasons,
                     QpCounters& counters)
    : service_(service),
      parts_(parts),
      attributes_(attributes),
      reasons_(reasons),
      counters_(counters),
      outbound_(parts, attributes),
      read_cursor_(send_sge_max(parts)) {}

void Requester::start() {
  acked_psn_ = next_psn_ = sent_psn_ = ack_asked_psn_ = first_unwrapped(attributes_.sq_psn);
  const std::uint64_t first_seq = parts_.send_queue->retired();
  outstanding_.start(parts_.send_queue->limits().depth, first_seq, next_psn_);
  position_ = {first_seq, 0};
  is_in_run_ = false;
  window_ = Window(attributes_.path_mtu);
  leave_flight();
  read_ends_.clear();
  read_ends_.reserve(std::max<std::size_t>(attributes_.max_rd_atomic, 1));
  outbound_.reset();
  read_cursor_seq_.reset();
  local_failure_seq_.reset();
  gap_.reset();
  has_failed_ = false;
  retry_ = Retry();
  probe_ = TailProbe();
  is_probe_due_ = false;
  apply_retry_limits();
}

void Requester::apply_retry_limits() {
  retry_.set_limits({attributes_.timeout, attributes_.retry_cnt, attributes_.rnr_retry});
}

std::optional<Requester::Unanswered> Requester::unanswered() const {
  if (has_failed_ || acked_psn_ == sent_psn_ || retry_.is_waiting_for_receiver()) return std::nullopt;
  return Unanswered{acked_psn_, sent_psn_, sent_at_};
}

bool Requester::next_datagram(queue::Instant now, bool may_begin, OutDatagram& out) {
  if (has_failed_ || retry_.is_waiting_for_receiver()) return false;
  if (is_probe_due_ && build_probe(out)) return true;
  // A request that cannot be sent stops those behind it; what is before it may still have to be sent again.
  if (local_failure_seq_ && position_.seq >= *local_failure_seq_) return false;
  const bool is_begun = position_.packet != 0;
  if (!is_begun && !(pass_local_requests(may_begin) && begin_next(may_begin))) return false;
  return may_send_packet() && build_packet(now, out);
}

// Gives the work request at position_ its PSNs if it has none yet; false when there is none to send.
bool Requester::begin_next(bool may_begin) {
  const queue::SendQueue& queue = *parts_.send_queue;
  if (position_.seq == queue.posted()) return is_in_run_ = false;
  if (position_.seq < outstanding_.begun_seq()) return true;
  if (!may_begin) return false;
  const Wqe& wqe = queue.at(position_.seq);
  if (is_fenced(wqe) || fails_locally(wqe)) return false;
  outstanding_.begin(packets_for(wqe.length, attributes_.path_mtu), wants_response(wqe));
  return true;
}

// Requests that send nothing are done when it is their turn, and complete in it: in the order posted. Going back does
// not do them again. False: one of them failed, or has to wait.
bool Requester::pass_local_requests(bool may_begin) {
  const queue::SendQueue& queue = *parts_.send_queue;
  while (position_.seq != queue.posted() && is_local(queue.at(position_.seq))) {
    if (position_.seq == outstanding_.begun_seq() && !carry_out_local(may_begin)) return false;
    position_ = {position_.seq + 1, 0};
  }
  retire_local_requests();
  return true;
}

bool Requester::carry_out_local(bool may_begin) {
  const Wqe& wqe = parts_.send_queue->at(position_.seq);
  if (!may_begin || is_fenced(wqe) || fails_locally(wqe)) return false;
  if (const auto done = outbound_.carry_out(wqe); !done) {
    reasons_.add("%s", describe_failure(wqe, done.error()).c_str());
    fail_later(queue::WcStatus::MwBindErr);
    return false;
  }
  outstanding_.begin(0, false);
  return true;
}

bool Requester::fails_locally(const Wqe& wqe) {
  if (wqe.forced_status != queue::WcStatus::Success) {
    reasons_.add_forced(wqe);
    fail_later(wqe.forced_status);
    return true;
  }
  if (is_atomic(wqe) && wqe.length != kAtomicBytes) {
    reasons_.add("send wr_id 0x%llx: an atomic returns 8 bytes, and its list holds %llu; completes with LOC_LEN_ERR",
                 static_cast<unsigned long long>(wqe.wr_id), static_cast<unsigned long long>(wqe.length));
    fail_later(queue::WcStatus::LocLenErr);
    return true;
  }
  const auto fault = outbound_.look_up(position_.seq, wqe, wants_response(wqe) ? queue::kAccessLocalWrite : 0);
  if (fault) fail_later(wqe, *fault);
  return fault.has_value();
}

void Requester::fail_later(const Wqe& wqe, const queue::SgFault& fault) {
  reasons_.add("send wr_id 0x%llx: %s; completes with LOC_PROT_ERR", static_cast<unsigned long long>(wqe.wr_id),
               describe(fault).c_str());
  fail_later(queue::WcStatus::LocProtErr);
}

// What cannot be sent fails, but only when what stands before it is done: completions keep their order.
void Requester::fail_later(queue::WcStatus status) {
  local_failure_seq_ = position_.seq;
  local_failure_ = status;
  fail_local_if_due();
}

bool Requester::may_send_packet() {
  const Wqe& wqe = parts_.send_queue->at(position_.seq);
  if (wants_response(wqe)) return next_read_packets() > 0;
  is_in_run_ = in_flight() < window_packets() && (is_in_run_ || has_company());
  return is_in_run_;
}

// Bought ib_send_bw -s 64 40 % more messages a second. What is unanswered has asked for an answer, so nothing waits for
// ever, and short messages behind a few long ones do not wait.
bool Requester::has_company() const {
  const queue::SendQueue& queue = *parts_.send_queue;
  return position_.seq - queue.retired() < kCompanyMin || queue.posted() - position_.seq >= kCompanyMin ||
         outstanding_.at(position_.seq).packets > 1;
}

void Requester::enter_flight() {
  if (!std::exchange(is_in_flight_, true)) parts_.flight->enter();
}

void Requester::leave_flight() {
  if (std::exchange(is_in_flight_, false)) parts_.flight->leave();
}

bool Requester::build_packet(queue::Instant now, OutDatagram& out) {
  const Wqe& wqe = parts_.send_queue->at(position_.seq);
  const std::uint64_t before = next_psn_;
  if (is_read(wqe)) {
    build_read_request(wqe, out);
  } else if (is_atomic(wqe)) {
    build_atomic_request(wqe, out);
  } else if (!build_message_packet(wqe, out)) {
    return false;
  }
  sent(now, next_psn_ - before);
  return true;
}

// The packet that went out last, once more and asking for an answer. IBTA 9.7.5.1.2: to a duplicate the responder says
// how far it has come, to one behind a gap what is missing.
bool Requester::build_probe(OutDatagram& out) {
  is_probe_due_ = false;
  if (next_psn_ == acked_psn_) return false;
  const Outstanding::Position last = outstanding_.find(parts_.send_queue->retired(), next_psn_ - 1);
  const Wqe& wqe = parts_.send_queue->at(last.seq);
  return !outbound_.build(last.seq, wqe, last.packet, {service_, Psn::of(next_psn_ - 1), true, wqe.remote_srqn}, out);
}

bool Requester::build_message_packet(const Wqe& wqe, OutDatagram& out) {
  const bool wants_ack = outbound_.is_last(wqe, position_.packet) || wants_ack_on_the_way();
  if (const auto fault = outbound_.build(position_.seq, wqe, position_.packet, numbers(wqe, wants_ack), out)) {
    fail_later(wqe, *fault);
    return false;
  }
  if (wants_ack) ack_asked_psn_ = next_psn_ + 1;
  ++next_psn_;
  return true;
}

// How many packets the next read request asks for; 0 when it has to wait.
std::uint64_t Requester::next_read_packets() const {
  const bool may_add = read_ends_.size() < std::max<std::size_t>(attributes_.max_rd_atomic, 1);
  const auto end = std::upper_bound(read_ends_.begin(), read_ends_.end(), next_psn_);
  if (end == read_ends_.end()) {
    return may_add ? read_packets_allowed(outstanding_.at(position_.seq).packets - position_.packet) : 0;
  }
  // Once more: up to where it ended the first time, in smaller pieces only while the responder can remember more.
  const std::uint64_t wanted = *end - next_psn_;
  const std::uint64_t allowed = read_packets_allowed(wanted);
  if (allowed == wanted || may_add) return allowed;
  return in_flight() == 0 ? wanted : 0;
}

// A long read is asked for in pieces, so that its responses never exceed the window: each piece is a read request of
// its own on the wire, with address and length advanced, as IBTA 9.7.5.1.3 has it for a read that is resumed.
std::uint64_t Requester::read_packets_allowed(std::uint64_t remaining) const {
  const std::uint64_t window = window_packets();
  const std::uint64_t used = in_flight();
  const std::uint64_t free = window > used ? window - used : 0;
  if (remaining <= free) return remaining;
  // Not in crumbs: a piece is worth half a window at least.
  return free * 2 >= window ? free : 0;
}

void Requester::build_read_request(const Wqe& wqe, OutDatagram& out) {
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t offset = position_.packet * mtu;
  const std::uint64_t packets = next_read_packets();
  const std::uint64_t length = std::min(packets * mtu, wqe.length - offset);
  begin_datagram(attributes_, out);
  Headers headers = headers_for(attributes_, Op::ReadRequest, numbers(wqe, true));
  headers.reth = Reth{wqe.remote_addr + offset, wqe.rkey, static_cast<std::uint32_t>(length)};
  finish_headers(headers, out);
  asked_for_response(packets);
}

void Requester::build_atomic_request(const Wqe& wqe, OutDatagram& out) {
  const bool is_swap = wqe.opcode == SendOpcode::CompareSwap;
  begin_datagram(attributes_, out);
  Headers headers = headers_for(attributes_, is_swap ? Op::CompareSwap : Op::FetchAdd, numbers(wqe, true));
  headers.atomic = is_swap ? AtomicEth{wqe.remote_addr, wqe.rkey, wqe.swap, wqe.compare_add}
                           : AtomicEth{wqe.remote_addr, wqe.rkey, wqe.compare_add, 0};
  finish_headers(headers, out);
  asked_for_response(1);
}

void Requester::asked_for_response(std::uint64_t packets) {
  next_psn_ += packets;
  ack_asked_psn_ = next_psn_;
  const auto place = std::lower_bound(read_ends_.begin(), read_ends_.end(), next_psn_);
  if (place == read_ends_.end() || *place != next_psn_) read_ends_.insert(place, next_psn_);
}

// Messages longer than the window need acknowledgements on their way, or the window would never open again.
bool Requester::wants_ack_on_the_way() const {
  return next_psn_ + 1 >= ack_asked_psn_ + std::max<std::uint64_t>(2, window_packets() / 4);
}

void Requester::sent(queue::Instant now, std::uint64_t packets) {
  if (next_psn_ > sent_psn_) {
    sent_psn_ = next_psn_;
    sent_at_ = now;
  }
  enter_flight();
  position_.packet += packets;
  if (position_.packet == outstanding_.at(position_.seq).packets) position_ = {position_.seq + 1, 0};
  retry_.on_sent(now);
  if (retry_.limits().timeout_code != 0) probe_.on_sent(now, next_psn_, ack_asked_psn_ == next_psn_);
  NICLESS_DCHECK(acked_psn_ <= next_psn_ && next_psn_ <= sent_psn_ && sent_psn_ <= outstanding_.end_psn());
}

}  // namespace nicless::wire
