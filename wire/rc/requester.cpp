// SPDX-License-Identifier: MIT
// Sending: what goes out next. What comes back is in requester_responses.cpp.
#include "wire/rc/requester.h"

#include <algorithm>

#include "queue/check.h"

namespace nicless::wire {

using queue::SendOpcode;
using queue::Wqe;

namespace {

// The first unwrapped PSN stays clear of zero, so that nothing an old packet says can go below it.
constexpr std::uint64_t first_unwrapped(std::uint32_t psn) {
  return (std::uint64_t{1} << 24) + (psn & Psn::kMask);
}

bool is_read(const Wqe& wqe) {
  return wqe.opcode == SendOpcode::Read;
}

// The operation of one packet of a message; what ends it depends on what the work request carries.
Op op_of(const Wqe& wqe, bool is_first, bool is_last) {
  const bool is_write = wqe.opcode == SendOpcode::Write || wqe.opcode == SendOpcode::WriteImm;
  const bool has_imm = wqe.opcode == SendOpcode::WriteImm || wqe.opcode == SendOpcode::SendImm;
  if (!is_last) {
    if (is_write) return is_first ? Op::WriteFirst : Op::WriteMiddle;
    return is_first ? Op::SendFirst : Op::SendMiddle;
  }
  if (is_write) {
    if (is_first) return has_imm ? Op::WriteOnlyImm : Op::WriteOnly;
    return has_imm ? Op::WriteLastImm : Op::WriteLast;
  }
  if (is_first) return has_imm ? Op::SendOnlyImm : Op::SendOnly;
  return has_imm ? Op::SendLastImm : Op::SendLast;
}

}  // namespace

Requester::Requester(const QpParts& parts, const QpAttributes& attributes, Reasons& reasons)
    : parts_(parts), attributes_(attributes), reasons_(reasons) {}

void Requester::start() {
  acked_psn_ = next_psn_ = sent_psn_ = ack_asked_psn_ = first_unwrapped(attributes_.sq_psn);
  const std::uint64_t first_seq = parts_.send_queue->retired();
  outstanding_.start(parts_.send_queue->limits().depth, first_seq, next_psn_);
  position_ = {first_seq, 0};
  window_ = Window(attributes_.path_mtu);
  read_ends_.clear();
  reads_under_way_.clear();
  reads_under_way_.reserve(std::max<std::size_t>(attributes_.max_rd_atomic, 1));
  send_cursor_seq_.reset();
  read_cursor_seq_.reset();
  local_failure_seq_.reset();
  gap_.reset();
  has_failed_ = false;
  retry_ = Retry();
  apply_retry_limits();
}

void Requester::apply_retry_limits() {
  retry_.set_limits({attributes_.timeout, attributes_.retry_cnt, attributes_.rnr_retry});
}

bool Requester::next_datagram(queue::Instant now, bool may_begin, OutDatagram& out) {
  if (has_failed_ || retry_.is_waiting_for_receiver()) return false;
  // A request that cannot be sent stops those behind it; what is before it may still have to be sent again.
  if (local_failure_seq_ && position_.seq >= *local_failure_seq_) return false;
  if (!begin_next(may_begin) || !may_send_packet()) return false;
  begin_datagram(attributes_, out);
  return build_packet(now, out);
}

// Gives the work request at position_ its PSNs if it has none yet; false when there is none to send.
bool Requester::begin_next(bool may_begin) {
  const queue::SendQueue& queue = *parts_.send_queue;
  if (position_.seq == queue.posted()) return false;
  if (position_.seq < outstanding_.begun_seq()) return true;
  if (!may_begin) return false;
  const Wqe& wqe = queue.at(position_.seq);
  // A fenced request waits for the reads and atomics before it. IBTA 10.8.3.3.
  if (wqe.fence && !reads_under_way_.empty()) return false;
  if (fails_locally(wqe)) return false;
  outstanding_.begin(packets_for(wqe.length, attributes_.path_mtu), is_read(wqe));
  return true;
}

// A list that may not be used fails its work request, but only when those before it are done: completions keep their
// order.
bool Requester::fails_locally(const Wqe& wqe) {
  if (wqe.has_inline_data) return false;
  const std::uint32_t access = is_read(wqe) ? queue::kAccessLocalWrite : 0;
  const auto fault = send_cursor_.resolve(*parts_.regions, parts_.pd, wqe.sges, access);
  send_cursor_seq_ = position_.seq;
  if (!fault) return false;
  reasons_.add("send wr_id 0x%llx: %s; completes with LOC_PROT_ERR", static_cast<unsigned long long>(wqe.wr_id),
               describe(*fault).c_str());
  local_failure_seq_ = position_.seq;
  fail_local_if_due();
  return true;
}

bool Requester::may_send_packet() const {
  const Wqe& wqe = parts_.send_queue->at(position_.seq);
  if (!is_read(wqe)) return in_flight() < window_.packets();
  if (reads_under_way_.size() >= std::max<std::size_t>(attributes_.max_rd_atomic, 1)) return false;
  return read_packets_allowed(read_packets_wanted()) > 0;
}

bool Requester::build_packet(queue::Instant now, OutDatagram& out) {
  const Wqe& wqe = parts_.send_queue->at(position_.seq);
  const std::uint64_t before = next_psn_;
  const bool is_built = is_read(wqe) ? build_read_request(wqe, out) : build_message_packet(wqe, out);
  if (is_built) sent(now, next_psn_ - before);
  return is_built;
}

bool Requester::build_message_packet(const Wqe& wqe, OutDatagram& out) {
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t offset = position_.packet * mtu;
  const std::uint64_t length = std::min(mtu, wqe.length - offset);
  const bool is_first = position_.packet == 0;
  const bool is_last = offset + length == wqe.length;
  if (!append_message_bytes(wqe, offset, length, out)) return false;

  const Op op = op_of(wqe, is_first, is_last);
  Headers headers = headers_for(op, is_last || wants_ack_on_the_way());
  headers.bth.solicited = is_last && wqe.solicited;
  headers.imm.network_order = wqe.imm_or_key;
  if (is_first) headers.reth = Reth{wqe.remote_addr, wqe.rkey, static_cast<std::uint32_t>(wqe.length)};
  finish_headers(headers, out);
  ++next_psn_;
  return true;
}

bool Requester::append_message_bytes(const Wqe& wqe, std::uint64_t offset, std::uint64_t length, OutDatagram& out) {
  if (wqe.has_inline_data) {
    append_payload(out, wqe.inline_data.subspan(offset, length));
    return true;
  }
  // A resend may be of an earlier list than the last one looked at; and a region may have gone meanwhile.
  const auto fault = send_cursor_seq_ == position_.seq ? send_cursor_.refresh(*parts_.regions)
                                                       : send_cursor_.resolve(*parts_.regions, parts_.pd, wqe.sges, 0);
  send_cursor_seq_ = position_.seq;
  if (fault) {
    reasons_.add("send wr_id 0x%llx: %s, while the message was being sent; completes with LOC_PROT_ERR",
                 static_cast<unsigned long long>(wqe.wr_id), describe(*fault).c_str());
    local_failure_seq_ = position_.seq;
    fail_local_if_due();
    return false;
  }
  const std::span<std::span<const std::byte>> room(out.spans);
  out.span_count = send_cursor_.gather(offset, length, room);
  out.payload_bytes = length;
  return true;
}

// What is left of the read, up to where an earlier request for it ended.
std::uint64_t Requester::read_packets_wanted() const {
  const std::uint64_t remaining = outstanding_.at(position_.seq).packets - position_.packet;
  const auto end = std::upper_bound(read_ends_.begin(), read_ends_.end(), next_psn_);
  return end == read_ends_.end() ? remaining : std::min(remaining, *end - next_psn_);
}

// A long read is asked for in pieces, so that its responses never exceed the window: each piece is a read request of
// its own on the wire, with address and length advanced, as IBTA 9.7.5.1.3 has it for a read that is resumed.
std::uint64_t Requester::read_packets_allowed(std::uint64_t remaining) const {
  const std::uint64_t window = window_.packets();
  const std::uint64_t used = in_flight();
  const std::uint64_t free = window > used ? window - used : 0;
  if (remaining <= free) return remaining;
  // Not in crumbs: a piece is worth half a window at least.
  return free * 2 >= window ? free : 0;
}

bool Requester::build_read_request(const Wqe& wqe, OutDatagram& out) {
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t offset = position_.packet * mtu;
  const std::uint64_t packets = read_packets_allowed(read_packets_wanted());
  const std::uint64_t length = std::min(packets * mtu, wqe.length - offset);
  Headers headers = headers_for(Op::ReadRequest, true);
  headers.reth = Reth{wqe.remote_addr + offset, wqe.rkey, static_cast<std::uint32_t>(length)};
  finish_headers(headers, out);
  next_psn_ += packets;
  reads_under_way_.push_back(next_psn_);
  const auto place = std::lower_bound(read_ends_.begin(), read_ends_.end(), next_psn_);
  if (place == read_ends_.end() || *place != next_psn_) read_ends_.insert(place, next_psn_);
  return true;
}

Headers Requester::headers_for(Op op, bool wants_ack) {
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, op);
  headers.bth.dest_qp = attributes_.dest_qpn;
  headers.bth.psn = Psn::of(next_psn_);
  headers.bth.ack_req = wants_ack;
  if (wants_ack) ack_asked_psn_ = next_psn_ + 1;
  return headers;
}

// Messages longer than the window need acknowledgements on their way, or the window would never open again.
bool Requester::wants_ack_on_the_way() const {
  return next_psn_ + 1 >= ack_asked_psn_ + window_.packets_between_ack_requests();
}

void Requester::sent(queue::Instant now, std::uint64_t packets) {
  sent_psn_ = std::max(sent_psn_, next_psn_);
  position_.packet += packets;
  if (position_.packet == outstanding_.at(position_.seq).packets) position_ = {position_.seq + 1, 0};
  retry_.on_sent(now);
  NICLESS_DCHECK(acked_psn_ <= next_psn_ && next_psn_ <= sent_psn_ && sent_psn_ <= outstanding_.end_psn());
}

}  // namespace nicless::wire
