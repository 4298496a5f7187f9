// SPDX-License-Identifier: MIT
#include "wire/uc/uc_queue_pair.h"

#include <cerrno>

#include "queue/format.h"

namespace nicless::wire {

namespace {

// How far behind what is expected a packet is a copy or a straggler. Further back, a peer has begun anew with a number
// of its own choice.
constexpr std::int32_t kLatePacketsMax = 1024;

}  // namespace

UcQueuePair::UcQueuePair(const QpParts& parts)
    : UnacknowledgedQueuePair(Transport::Uc, parts),
      inbound_(parts_, attributes_, reasons_, Inbound::Peer::HearsNothing) {}

queue::Result<void> UcQueuePair::check_opcode(const queue::Wqe& request) const {
  using enum queue::SendOpcode;
  switch (request.opcode) {
    case Send:
    case SendImm:
    case Write:
    case WriteImm:
    case LocalInv:
    case BindMw:
      return {};
    default:
      return queue::error(EINVAL, queue::format("%s is not an operation of unreliable connections, which send "
                                                "and write and bind windows",
                                                queue::to_string(request.opcode)));
  }
}

void UcQueuePair::start_receiving() {
  expected_psn_ = Psn(attributes_.rq_psn);
  is_dropping_ = false;
  inbound_.reset();
}

void UcQueuePair::start_sending() {
  UnacknowledgedQueuePair::start_sending();
  packet_ = 0;
}

void UcQueuePair::forget() {
  start_receiving();
  start_sending();
}

bool UcQueuePair::next_datagram(queue::Instant, OutDatagram& out) {
  if (state() != QpState::Rts && (state() != QpState::Sqd || packet_ == 0)) return false;
  const queue::Wqe* wqe = sends_.next();
  while (wqe != nullptr && is_local(*wqe)) wqe = carry_out_local(*wqe) ? sends_.next() : nullptr;
  if (wqe == nullptr) return false;
  const std::uint64_t seq = sends_.next_seq();
  if (packet_seq_ != seq) packet_ = 0;  // the one before it was flushed half-way
  packet_seq_ = seq;
  if (fails_by_force(*wqe)) return false;
  if (const auto fault = outbound_.build(seq, *wqe, packet_, {Service::Uc, Psn(next_send_psn()), false}, out)) {
    fail_send(*wqe, *fault);
    return false;
  }
  take_psn();
  if (outbound_.is_last(*wqe, packet_++)) {
    sends_.handed_out();
    packet_ = 0;
  }
  return true;
}

bool UcQueuePair::carry_out_local(const queue::Wqe& wqe) {
  if (fails_by_force(wqe)) return false;
  if (const auto done = outbound_.carry_out(wqe); !done) {
    reasons_.add("%s", describe_failure(wqe, done.error()).c_str());
    fail_send(queue::WcStatus::MwBindErr);
    return false;
  }
  sends_.done_at_once();
  return true;
}

void UcQueuePair::receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) {
  if (datagram.from.address != attributes_.path.remote) {
    ++counters_.wrong_source;
    return;
  }
  note_established();
  on_request(packet, info);
}

// A packet out of sequence ends the message it would have been part of; one that begins a message is always welcome.
// IBTA 9.8.2.2. A fabric neither doubles nor reorders; a datagram network does, so what is behind is dropped.
void UcQueuePair::on_request(const PacketView& packet, const OpcodeInfo& info) {
  const std::int32_t ahead = distance(expected_psn_, packet.headers.bth.psn);
  if (ahead < 0 && ahead >= -kLatePacketsMax) {
    ++counters_.late;
    return;
  }
  const bool is_in_sequence = ahead == 0;
  expected_psn_ = Psn(packet.headers.bth.psn.value() + 1);
  if (inbound_.is_in_message() && (!is_in_sequence || info.starts_message())) {
    ++counters_.lost_message;
    inbound_.drop_message();
  }
  if (info.starts_message()) is_dropping_ = false;
  if (is_dropping_ || !inbound_.is_well_formed(packet, info)) {
    is_dropping_ = true;
    return inbound_.drop_message();
  }
  const auto outcome = info.family == Family::Send ? inbound_.on_send(packet, info) : inbound_.on_write(packet, info);
  using Kind = Inbound::Outcome::Kind;
  switch (outcome.kind) {
    case Kind::Placed:
      return;
    case Kind::NoReceive:
      if (counters_.no_receive++ == 0) {
        reasons_.add("dropped a message: no receive was posted, and the sender does not hear of it");
      }
      is_dropping_ = true;
      return inbound_.drop_message();
    case Kind::Refused:
      is_dropping_ = true;
      return inbound_.drop_message();
    case Kind::FailedLocally:
      return enter_error();
  }
}

}  // namespace nicless::wire
