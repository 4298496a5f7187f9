// SPDX-License-Identifier: MIT
#include "wire/rc/queue_pair.h"

#include <cerrno>

#include "queue/format.h"
#include "wire/rc/qp_state.h"

namespace nicless::wire {

using queue::AsyncType;
using queue::error;
using queue::format;
using queue::Result;

RcQueuePair::RcQueuePair(const QpParts& parts)
    : parts_(parts),
      reasons_(parts.qpn),
      requester_(parts_, attributes_, reasons_),
      responder_(parts_, attributes_, reasons_) {}

QpAttributes RcQueuePair::attributes() const {
  QpAttributes now = attributes_;
  now.current_state = now.state;
  if (now.state == QpState::Rts || now.state == QpState::Sqd) now.sq_psn = requester_.next_psn();
  if (now.state >= QpState::Rtr && now.state <= QpState::Sqd) now.rq_psn = responder_.expected_psn();
  return now;
}

Result<void> RcQueuePair::modify(queue::Instant now, const QpAttributes& wanted, std::uint32_t mask) {
  const QpState from = attributes_.state;
  if ((mask & attr_mask::kCurState) && wanted.current_state != from) {
    return error(EINVAL, format("cur_qp_state says %s, but the queue pair is in %s", to_string(wanted.current_state),
                                to_string(from)));
  }
  const QpState to = (mask & attr_mask::kState) ? wanted.state : from;
  if (auto checked = check_transition(Service::Rc, from, to, mask); !checked) return checked;
  if (auto checked = check_values(wanted, mask); !checked) return checked;
  apply(wanted, mask);
  attributes_.state = to;
  enter(from, to);
  is_drain_event_due_ |= to == QpState::Sqd && from == QpState::Rts && (mask & attr_mask::kEnSqdAsyncNotify);
  on_post(now);
  return {};
}

Result<void> RcQueuePair::check_values(const QpAttributes& wanted, std::uint32_t mask) const {
  const auto out_of_range = [](const char* name, unsigned value, unsigned maximum) {
    return error(EINVAL, format("%s is %u, the largest value is %u", name, value, maximum));
  };
  if (mask & attr_mask::kPathMtu) {
    const unsigned mtu = wanted.path_mtu;
    if (mtu < 256 || mtu > kPathMtuBytesMax || (mtu & (mtu - 1)) != 0) {
      return error(EINVAL, "path_mtu is not one of IBV_MTU_256 to IBV_MTU_4096");
    }
  }
  if ((mask & attr_mask::kTimeout) && wanted.timeout > 31) return out_of_range("timeout", wanted.timeout, 31);
  if ((mask & attr_mask::kRetryCnt) && wanted.retry_cnt > 7) return out_of_range("retry_cnt", wanted.retry_cnt, 7);
  if ((mask & attr_mask::kRnrRetry) && wanted.rnr_retry > 7) return out_of_range("rnr_retry", wanted.rnr_retry, 7);
  if ((mask & attr_mask::kMinRnrTimer) && wanted.min_rnr_timer > 31) {
    return out_of_range("min_rnr_timer", wanted.min_rnr_timer, 31);
  }
  if ((mask & attr_mask::kMaxQpRdAtomic) && wanted.max_rd_atomic > kRdAtomicMax) {
    return out_of_range("max_rd_atomic", wanted.max_rd_atomic, kRdAtomicMax);
  }
  if ((mask & attr_mask::kMaxDestRdAtomic) && wanted.max_dest_rd_atomic > kRdAtomicMax) {
    return out_of_range("max_dest_rd_atomic", wanted.max_dest_rd_atomic, kRdAtomicMax);
  }
  return {};
}

void RcQueuePair::apply(const QpAttributes& wanted, std::uint32_t mask) {
  const auto take = [&](std::uint32_t bit, auto QpAttributes::*member) {
    if (mask & bit) attributes_.*member = wanted.*member;
  };
  take(attr_mask::kAccessFlags, &QpAttributes::access);
  take(attr_mask::kPathMtu, &QpAttributes::path_mtu);
  take(attr_mask::kQkey, &QpAttributes::qkey);
  take(attr_mask::kRqPsn, &QpAttributes::rq_psn);
  take(attr_mask::kSqPsn, &QpAttributes::sq_psn);
  take(attr_mask::kDestQpn, &QpAttributes::dest_qpn);
  take(attr_mask::kAv, &QpAttributes::path);
  take(attr_mask::kTimeout, &QpAttributes::timeout);
  take(attr_mask::kRetryCnt, &QpAttributes::retry_cnt);
  take(attr_mask::kRnrRetry, &QpAttributes::rnr_retry);
  take(attr_mask::kMinRnrTimer, &QpAttributes::min_rnr_timer);
  take(attr_mask::kMaxQpRdAtomic, &QpAttributes::max_rd_atomic);
  take(attr_mask::kMaxDestRdAtomic, &QpAttributes::max_dest_rd_atomic);
}

void RcQueuePair::enter(QpState from, QpState to) {
  if (from == QpState::Sqd) requester_.apply_retry_limits();
  if (from == to) return;
  switch (to) {
    case QpState::Reset:
      return reset();
    case QpState::Rtr:
      is_established_ = false;
      return responder_.start();
    case QpState::Rts:
      is_established_ = true;
      if (from == QpState::Rtr) requester_.start();
      return;
    case QpState::Err:
      return enter_error();
    case QpState::Init:
    case QpState::Sqd:
    case QpState::Sqe:
      return;
  }
}

void RcQueuePair::reset() {
  attributes_ = QpAttributes{};
  parts_.send_queue->reset();
  if (parts_.own_receives) parts_.own_receives->reset();
  responder_.start();  // forgets what is half-arrived or owed
  is_drain_event_due_ = false;
}

// Everything that is outstanding completes with WR_FLUSH_ERR; the first error keeps its own status. IBTA 10.3.1.
void RcQueuePair::enter_error() {
  attributes_.state = QpState::Err;
  parts_.send_queue->flush();
  responder_.flush();
  if (parts_.own_receives) {
    parts_.own_receives->flush();
  } else {
    parts_.async_events->push({AsyncType::QpLastWqeReached, parts_.handle});
  }
}

Result<void> RcQueuePair::check_post_send(const queue::Wqe& request) const {
  using enum queue::SendOpcode;
  switch (request.opcode) {
    case Send:
    case SendImm:
    case Write:
    case WriteImm:
    case Read:
      break;
    default:
      return error(EOPNOTSUPP,
                   format("opcode %u is not supported by this queue pair yet", static_cast<unsigned>(request.opcode)));
  }
  if (request.opcode == Read && request.has_inline_data) return error(EINVAL, "a read cannot take inline data");
  const bool is_allowed = state() == QpState::Rts || state() == QpState::Sqd || state() == QpState::Err;
  if (is_allowed) return {};
  return error(EINVAL, format("the queue pair is in %s; sends may be posted in RTS", to_string(state())));
}

Result<void> RcQueuePair::check_post_recv() const {
  if (state() != QpState::Reset) return {};
  return error(EINVAL, "the queue pair is in RESET; receives may be posted from INIT on");
}

void RcQueuePair::on_recv_posted() {
  if (state() == QpState::Err && parts_.own_receives) parts_.own_receives->flush();
}

void RcQueuePair::on_post(queue::Instant) {
  if (state() == QpState::Err) parts_.send_queue->flush();
  tell_if_drained();
}

void RcQueuePair::on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) {
  const OpcodeInfo* info = find_opcode(packet.headers.bth.opcode);
  if (info == nullptr || info->service != Service::Rc) {
    ++counters_.wrong_service;
    return;
  }
  const bool is_response = info->has_aeth || info->family == Family::ReadResponse;
  const bool has_requester = state() == QpState::Rts || state() == QpState::Sqd;
  const bool has_responder = has_requester || state() == QpState::Rtr;
  if (is_response ? !has_requester : !has_responder) {
    ++counters_.wrong_state;
    return;
  }
  if (datagram.from.address != attributes_.path.remote) {
    ++counters_.wrong_source;
    return;
  }
  if (!is_established_) {  // the peer was faster than our own RTR -> RTS. IBTA 11.6.3.1.
    is_established_ = true;
    parts_.async_events->push({AsyncType::CommEst, parts_.handle});
  }
  if (is_response) {
    requester_.on_response(now, packet);
  } else {
    responder_.on_request(now, packet);
  }
  if (has_failed()) enter_error();
  tell_if_drained();
}

void RcQueuePair::on_deadline(queue::Instant now) {
  if (state() != QpState::Rts && state() != QpState::Sqd) return;
  requester_.on_deadline(now);
  if (requester_.has_failed()) enter_error();
}

bool RcQueuePair::next_datagram(queue::Instant now, OutDatagram& out) {
  if (state() < QpState::Rtr) return false;
  // In ERR too: the peer still has to hear why.
  bool is_built = responder_.next_datagram(out);
  if (!is_built && (state() == QpState::Rts || state() == QpState::Sqd)) {
    is_built = requester_.next_datagram(now, state() == QpState::Rts, out);
  }
  if (state() != QpState::Err && has_failed()) enter_error();
  return is_built;
}

std::optional<queue::Instant> RcQueuePair::next_deadline() const {
  if (state() != QpState::Rts && state() != QpState::Sqd) return std::nullopt;
  return requester_.next_deadline();
}

void RcQueuePair::tell_if_drained() {
  if (!is_drain_event_due_ || state() != QpState::Sqd || !requester_.is_idle()) return;
  is_drain_event_due_ = false;
  parts_.async_events->push({AsyncType::SqDrained, parts_.handle});
}

}  // namespace nicless::wire
