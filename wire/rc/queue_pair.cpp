// SPDX-License-Identifier: MIT
#include "wire/rc/queue_pair.h"

#include <cerrno>

#include "queue/format.h"

namespace nicless::wire {

RcQueuePair::RcQueuePair(const QpParts& parts, Transport transport)
    : ProgramQueuePair(transport, parts),
      requester_(service(), parts_, attributes_, reasons_, counters_),
      responder_(service(), parts_, attributes_, reasons_, counters_) {}

std::uint32_t RcQueuePair::next_send_psn() const {
  return has_requester() ? requester_.next_psn() : attributes_.sq_psn;
}

std::uint32_t RcQueuePair::next_receive_psn() const {
  return has_responder() ? responder_.expected_psn() : attributes_.rq_psn;
}

queue::Result<void> RcQueuePair::check_opcode(const queue::Wqe& request) const {
  using enum queue::SendOpcode;
  if (!has_requester()) {
    return queue::error(ENOMEM, "an XRC target (IBV_QPT_XRC_RECV) only receives; post on one of type IBV_QPT_XRC_SEND");
  }
  switch (request.opcode) {
    case Read:
    case CompareSwap:
    case FetchAdd:
      if (request.has_inline_data) return queue::error(EINVAL, "what brings data back cannot be inline");
      return {};
    case Send:
    case SendImm:
    case SendInv:
    case Write:
    case WriteImm:
    case LocalInv:
    case BindMw:
      return {};
  }
  return queue::error(EINVAL,
                      queue::format("%s is no operation of reliable connections", queue::to_string(request.opcode)));
}

void RcQueuePair::on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) {
  const OpcodeInfo* info = find_opcode(packet.headers.bth.opcode);
  const bool is_response = info != nullptr && (info->has_aeth || info->family == Family::ReadResponse);
  const bool has_half = is_response ? has_requester() : has_responder();
  if (info == nullptr || info->service != service() || !has_half) {
    ++counters_.wrong_service;
    return;
  }
  if (is_response ? !is_sending() : !is_receiving()) {
    ++counters_.wrong_state;
    return;
  }
  if (datagram.from.address != attributes_.path.remote) {
    ++counters_.wrong_source;
    return;
  }
  note_established();
  if (is_response) {
    requester_.on_response(now, packet);
  } else {
    responder_.on_request(now, packet);
  }
  fail_if_halves_did();
  tell_if_drained();
}

void RcQueuePair::on_deadline(queue::Instant now) {
  if (!is_requesting()) return;
  requester_.on_deadline(now);
  fail_if_halves_did();
}

bool RcQueuePair::next_datagram(queue::Instant now, OutDatagram& out) {
  if (state() < QpState::Rtr) return false;
  // In ERR too: the peer still has to hear why.
  bool is_built = responder_.next_datagram(out);
  if (!is_built && is_requesting()) is_built = requester_.next_datagram(now, state() == QpState::Rts, out);
  fail_if_halves_did();
  return is_built;
}

std::optional<queue::Instant> RcQueuePair::next_deadline() const {
  return is_requesting() ? requester_.next_deadline() : std::nullopt;
}

void RcQueuePair::fail_if_halves_did() {
  fail_if_cq_overran();
  if (state() != QpState::Err && (requester_.has_failed() || responder_.has_failed())) enter_error();
}

}  // namespace nicless::wire
