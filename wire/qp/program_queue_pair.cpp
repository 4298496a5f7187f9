// SPDX-License-Identifier: MIT
#include "wire/qp/program_queue_pair.h"

#include <cerrno>

#include "queue/format.h"
#include "wire/qp/qp_state.h"
#include "wire/qp/source_port.h"

namespace nicless::wire {

using queue::AsyncType;
using queue::error;
using queue::format;
using queue::Result;

namespace {

Result<void> check_values(const QpAttributes& wanted, std::uint32_t mask) {
  struct Limit {
    std::uint32_t bit;
    const char* name;
    unsigned value;
    unsigned maximum;
  };
  const Limit limits[] = {
      {attr_mask::kTimeout, "timeout", wanted.timeout, 31},
      {attr_mask::kRetryCnt, "retry_cnt", wanted.retry_cnt, 7},
      {attr_mask::kRnrRetry, "rnr_retry", wanted.rnr_retry, 7},
      {attr_mask::kMinRnrTimer, "min_rnr_timer", wanted.min_rnr_timer, 31},
      {attr_mask::kMaxQpRdAtomic, "max_rd_atomic", wanted.max_rd_atomic, kRdAtomicMax},
      {attr_mask::kMaxDestRdAtomic, "max_dest_rd_atomic", wanted.max_dest_rd_atomic, kRdAtomicMax},
  };
  for (const Limit& limit : limits) {
    if ((mask & limit.bit) == 0 || limit.value <= limit.maximum) continue;
    return error(EINVAL, format("%s is %u, the largest value is %u", limit.name, limit.value, limit.maximum));
  }
  const unsigned mtu = wanted.path_mtu;
  const bool is_mtu = mtu >= 256 && mtu <= kPathMtuBytesMax && (mtu & (mtu - 1)) == 0;
  if ((mask & attr_mask::kPathMtu) && !is_mtu) {
    return error(EINVAL, "path_mtu is not one of IBV_MTU_256 to IBV_MTU_4096");
  }
  return {};
}

void apply(const QpAttributes& wanted, std::uint32_t mask, QpAttributes& attributes) {
  const auto take = [&](std::uint32_t bit, auto QpAttributes::*member) {
    if (mask & bit) attributes.*member = wanted.*member;
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

}  // namespace

ProgramQueuePair::ProgramQueuePair(Transport transport, const QpParts& parts)
    : transport_(transport), parts_(parts), reasons_(parts.qpn) {}

QpAttributes ProgramQueuePair::attributes() const {
  QpAttributes now = attributes_;
  now.current_state = now.state;
  now.sq_draining = now.state == QpState::Sqd && !is_drained();
  if (is_sending()) now.sq_psn = next_send_psn();
  if (is_receiving()) now.rq_psn = next_receive_psn();
  return now;
}

Result<void> ProgramQueuePair::modify(queue::Instant now, const QpAttributes& wanted, std::uint32_t mask) {
  mask &= ~ignored_attributes(transport_);
  const QpState from = attributes_.state;
  if ((mask & attr_mask::kCurState) && wanted.current_state != from) {
    return error(EINVAL, format("cur_qp_state says %s, but the queue pair is in %s", to_string(wanted.current_state),
                                to_string(from)));
  }
  const QpState to = (mask & attr_mask::kState) ? wanted.state : from;
  if (auto checked = check_transition(transport_, from, to, mask); !checked) return checked;
  if (auto checked = check_values(wanted, mask); !checked) return checked;
  apply(wanted, mask, attributes_);
  if (mask & attr_mask::kAv) {
    attributes_.source_port = connection_source_port(attributes_.path.flow_label, parts_.qpn, attributes_.dest_qpn);
  }
  attributes_.state = to;
  enter(from, to);
  if (from == QpState::Rts && to == QpState::Sqd) {
    is_drain_event_due_ = (mask & attr_mask::kEnSqdAsyncNotify) && wanted.sqd_async_notify;
  }
  on_post(now);
  return {};
}

void ProgramQueuePair::enter(QpState from, QpState to) {
  if (from == QpState::Sqd && is_sending()) resume_sending();
  if (from == to) return;
  switch (to) {
    case QpState::Reset:
      return reset();
    case QpState::Rtr:
      is_established_ = false;
      return start_receiving();
    case QpState::Rts:
      is_established_ = true;
      if (from == QpState::Rtr) start_sending();
      return;
    case QpState::Err:
      return enter_error();
    case QpState::Init:
    case QpState::Sqd:
    case QpState::Sqe:
      return;
  }
}

void ProgramQueuePair::reset() {
  attributes_ = QpAttributes{};
  if (parts_.send_queue) parts_.send_queue->reset();
  if (parts_.own_receives) {
    parts_.own_receives->reset();
  } else if (parts_.recv_cq) {
    parts_.recv_cq->purge(parts_.qpn);
  }
  forget();
  is_drain_event_due_ = false;
  is_fatal_ = false;
  if (parts_.send_queue != nullptr) parts_.send_queue->cq().forget_lost_completions_of(parts_.qpn);
  if (parts_.recv_cq != nullptr) parts_.recv_cq->forget_lost_completions_of(parts_.qpn);
}

void ProgramQueuePair::tell_if_drained() {
  if (!is_drain_event_due_ || state() != QpState::Sqd || !is_drained()) return;
  is_drain_event_due_ = false;
  parts_.async_events->push({AsyncType::SqDrained, parts_.handle});
}

// Everything that is outstanding completes with WR_FLUSH_ERR; the first error keeps its own status. IBTA 10.3.1.
void ProgramQueuePair::enter_error() {
  attributes_.state = QpState::Err;
  flush_sends();
  flush_inbound();
  if (parts_.own_receives) {
    parts_.own_receives->flush();
  } else if (parts_.receives || parts_.xrc_domain) {
    parts_.async_events->push({AsyncType::QpLastWqeReached, parts_.handle});
  }
}

bool ProgramQueuePair::has_lost_completion() const {
  return (parts_.send_queue != nullptr && parts_.send_queue->cq().has_lost_completion_of(parts_.qpn)) ||
         (parts_.recv_cq != nullptr && parts_.recv_cq->has_lost_completion_of(parts_.qpn));
}

void ProgramQueuePair::fail_if_cq_overran() {
  if (is_fatal_) return;
  if (!has_lost_completion()) return;
  is_fatal_ = true;
  reasons_.add("its completion queue is overrun and took no more of its completions; it goes to ERR (QP_FATAL)");
  parts_.async_events->push({AsyncType::QpFatal, parts_.handle});
  if (state() != QpState::Err) enter_error();
}

void ProgramQueuePair::enter_send_error() {
  attributes_.state = QpState::Sqe;
  flush_sends();
}

void ProgramQueuePair::flush_sends() {
  if (parts_.send_queue) parts_.send_queue->flush();
}

void ProgramQueuePair::note_established() {
  if (is_established_) return;
  is_established_ = true;
  parts_.async_events->push({AsyncType::CommEst, parts_.handle});
}

Result<void> ProgramQueuePair::check_post_send(const queue::Wqe& request) const {
  if (auto checked = check_opcode(request); !checked) return checked;
  if (is_sending() || state() == QpState::Err || state() == QpState::Sqe) return {};
  return error(EINVAL, format("the queue pair is in %s; sends may be posted in RTS", to_string(state())));
}

Result<void> ProgramQueuePair::check_post_recv() const {
  if (state() != QpState::Reset) return {};
  return error(EINVAL, "the queue pair is in RESET; receives may be posted from INIT on");
}

void ProgramQueuePair::on_recv_posted() {
  if (state() != QpState::Err || !parts_.own_receives) return;
  parts_.own_receives->flush();
  fail_if_cq_overran();
}

void ProgramQueuePair::on_post(queue::Instant) {
  if (state() == QpState::Err || state() == QpState::Sqe) flush_sends();
  tell_if_drained();
  fail_if_cq_overran();
}

}  // namespace nicless::wire
