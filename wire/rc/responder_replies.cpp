// SPDX-License-Identifier: MIT
// What the responder owes: responses to reads and atomics, and one acknowledgement for all that came before it.
#include <algorithm>

#include "queue/check.h"
#include "queue/guarded_copy.h"
#include "wire/qp/outbound.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

// A peer that asks again has no more under way for that: duplicates do not count. IBTA 9.7.4.1.4.
bool Responder::is_one_too_many() {
  const auto first_answers =
      std::count_if(replies_.begin(), replies_.end(), [](const Reply& reply) { return !reply.is_duplicate; });
  if (first_answers < attributes_.max_dest_rd_atomic) return false;
  reasons_.add(
      "received more reads and atomics at once than max_dest_rd_atomic (%u) allows; the sender gets REM_INV_REQ_ERR",
      unsigned{attributes_.max_dest_rd_atomic});
  return true;
}

void Responder::answer_read(std::uint64_t psn, const PacketView& packet, bool is_duplicate) {
  const Reth& reth = packet.headers.reth;
  insert_reply({psn,
                {psn, packets_for(reth.length, attributes_.path_mtu), reth},
                msn_,
                is_duplicate,
                std::nullopt,
                packet.headers.xrc.srqn});
}

void Responder::answer_atomic(std::uint64_t psn, std::uint64_t original, bool is_duplicate) {
  insert_reply({psn, {psn, 1, {}}, msn_, is_duplicate, original, {}});
}

// Keeps the replies in PSN order. A duplicate whose first answer is still waiting or half sent takes its place.
void Responder::insert_reply(const Reply& reply) {
  const std::uint64_t psn = reply.next_psn;
  const auto after =
      std::find_if(replies_.begin(), replies_.end(), [psn](const Reply& other) { return other.end_psn() > psn; });
  const bool overlaps = after != replies_.end() && after->read.first_psn < reply.end_psn();
  if (!overlaps) {
    replies_.insert(after, reply);
  } else if (after->next_psn > psn) {
    *after = reply;
  }
}

bool Responder::next_datagram(OutDatagram& out) {
  while (!replies_.empty()) {
    if (build_reply(out)) return true;
  }
  if (!acknowledge_) return false;
  build_acknowledge(out);
  return true;
}

bool Responder::build_reply(OutDatagram& out) {
  Reply& reply = replies_.front();
  begin_datagram(attributes_, out);
  if (reply.original) {
    build_atomic_response(reply, out);
  } else if (!build_read_response(reply, out)) {
    return false;
  }
  // A response acknowledges all that came before it. IBTA 9.7.5.1.1.
  const bool is_plain = acknowledge_ && acknowledge_->aeth.kind() == Aeth::Kind::Ack;
  if (is_plain && acknowledge_->psn < reply.next_psn) acknowledge_.reset();
  if (++reply.next_psn == reply.end_psn()) replies_.erase(replies_.begin());
  return true;
}

bool Responder::build_read_response(Reply& reply, OutDatagram& out) {
  const Reth& reth = reply.read.reth;
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t index = reply.next_psn - reply.read.first_psn;
  const std::uint64_t offset = index * mtu;
  const std::uint64_t length = std::min(mtu, reth.length - offset);
  if (length > 0) {
    std::byte* const found = find_readable(reply, offset, length);
    if (found == nullptr) {  // deregistered since the request was accepted
      parts_.async_events->push({queue::AsyncType::QpAccessErr, parts_.handle});
      break_off(NakCode::RemoteAccessError, reply.next_psn);
      return false;
    }
    const std::span<const std::byte> bytes{found, static_cast<std::size_t>(length)};
    if (!queue::is_readable(bytes)) {
      inbound_.lose_memory(reth, " read");
      break_off(NakCode::RemoteOperationalError, reply.next_psn);
      return false;
    }
    append_payload(out, bytes);
  }
  const bool is_first = index == 0;
  const bool is_last = reply.next_psn + 1 == reply.end_psn();
  const Op op = is_first ? (is_last ? Op::ReadResponseOnly : Op::ReadResponseFirst)
                         : (is_last ? Op::ReadResponseLast : Op::ReadResponseMiddle);
  Headers headers = headers_for(attributes_, op, {service_, Psn::of(reply.next_psn), false});
  headers.aeth = Aeth::ack(reply.msn);
  finish_headers(headers, out);
  return true;
}

// A NAK takes the place of the response with this PSN, and of all that was to follow.
void Responder::break_off(NakCode code, std::uint64_t psn) {
  acknowledge(Aeth::nak(code, msn_), psn);
  replies_.clear();
  has_failed_ = true;
}

// Null if it may not be read any more.
std::byte* Responder::find_readable(const Reply& reply, std::uint64_t offset, std::uint64_t length) const {
  Receiving place = receiving_of(parts_);
  if (parts_.xrc_domain) {
    const auto srq = parts_.xrc_domain->find(reply.srqn);
    if (!srq) return nullptr;
    place = receiving_of(*srq);
  }
  const Reth& reth = reply.read.reth;
  return place.regions
      ->find_remote({place.remote_pd, parts_.qpn}, reth.rkey, reth.address + offset, length, queue::kAccessRemoteRead)
      .pointer;
}

void Responder::build_atomic_response(const Reply& reply, OutDatagram& out) {
  Headers headers = headers_for(attributes_, Op::AtomicAcknowledge, {service_, Psn::of(reply.next_psn), false});
  headers.aeth = Aeth::ack(reply.msn);
  headers.atomic_ack.original = *reply.original;
  finish_headers(headers, out);
}

void Responder::build_acknowledge(OutDatagram& out) {
  begin_datagram(attributes_, out);
  Headers headers = headers_for(attributes_, Op::Acknowledge, {service_, Psn::of(acknowledge_->psn), false});
  headers.aeth = acknowledge_->aeth;
  finish_headers(headers, out);
  acknowledge_.reset();
}

}  // namespace nicless::wire
