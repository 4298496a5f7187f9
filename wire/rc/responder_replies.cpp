// SPDX-License-Identifier: MIT
// What the responder owes: read responses, and one acknowledgement for all that came before it.
#include <algorithm>

#include "queue/check.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

// A peer that asks again has no more reads under way for that: duplicates do not count.
bool Responder::is_one_read_too_many() const {
  const auto first_answers = std::count_if(read_replies_.begin(), read_replies_.end(),
                                           [](const ReadReply& reply) { return !reply.is_duplicate; });
  return first_answers >= attributes_.max_dest_rd_atomic;
}

// Keeps the replies in PSN order. A duplicate whose first answer is still waiting or half sent takes its place.
void Responder::answer_read(std::uint64_t psn, const Reth& reth, bool is_duplicate) {
  const ReadReply reply{psn, {psn, packets_for(reth.length, attributes_.path_mtu), reth}, msn_, is_duplicate};
  const auto after = std::find_if(read_replies_.begin(), read_replies_.end(),
                                  [psn](const ReadReply& other) { return other.end_psn() > psn; });
  const bool overlaps = after != read_replies_.end() && after->read.first_psn < reply.end_psn();
  if (!overlaps) {
    read_replies_.insert(after, reply);
  } else if (after->next_psn > psn) {
    *after = reply;
  }
}

bool Responder::next_datagram(OutDatagram& out) {
  while (!read_replies_.empty()) {
    if (build_read_response(out)) return true;
  }
  if (!acknowledge_) return false;
  build_acknowledge(out);
  return true;
}

bool Responder::build_read_response(OutDatagram& out) {
  ReadReply& reply = read_replies_.front();
  const Reth& reth = reply.read.reth;
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t index = reply.next_psn - reply.read.first_psn;
  const std::uint64_t offset = index * mtu;
  const std::uint64_t length = std::min(mtu, reth.length - offset);
  begin_datagram(attributes_, out);
  if (length > 0) {
    const queue::Access found =
        parts_.regions->find_remote(parts_.pd, reth.rkey, reth.address + offset, length, queue::kAccessRemoteRead);
    if (!found) {  // deregistered since the request was accepted
      acknowledge(Aeth::nak(NakCode::RemoteAccessError, msn_), reply.next_psn);
      read_replies_.clear();
      has_failed_ = true;
      return false;
    }
    append_payload(out, {found.pointer, static_cast<std::size_t>(length)});
  }
  const bool is_first = index == 0;
  const bool is_last = reply.next_psn + 1 == reply.end_psn();
  const Op op = is_first ? (is_last ? Op::ReadResponseOnly : Op::ReadResponseFirst)
                         : (is_last ? Op::ReadResponseLast : Op::ReadResponseMiddle);
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, op);
  headers.bth.dest_qp = attributes_.dest_qpn;
  headers.bth.psn = Psn::of(reply.next_psn);
  headers.aeth = Aeth::ack(reply.msn);
  finish_headers(headers, out);
  // A response acknowledges all that came before it. IBTA 9.7.5.1.1.
  const bool is_plain = acknowledge_ && acknowledge_->aeth.kind() == Aeth::Kind::Ack;
  if (is_plain && acknowledge_->psn < reply.next_psn) acknowledge_.reset();
  ++reply.next_psn;
  if (is_last) read_replies_.pop_front();
  return true;
}

void Responder::build_acknowledge(OutDatagram& out) {
  begin_datagram(attributes_, out);
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, Op::Acknowledge);
  headers.bth.dest_qp = attributes_.dest_qpn;
  headers.bth.psn = Psn::of(acknowledge_->psn);
  headers.aeth = acknowledge_->aeth;
  finish_headers(headers, out);
  acknowledge_.reset();
}

}  // namespace nicless::wire
