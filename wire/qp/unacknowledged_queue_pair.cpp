// SPDX-License-Identifier: MIT
#include "wire/qp/unacknowledged_queue_pair.h"

namespace nicless::wire {

using queue::WcStatus;

UnacknowledgedQueuePair::UnacknowledgedQueuePair(Transport transport, const QpParts& parts)
    : ProgramQueuePair(transport, parts), outbound_(parts_, attributes_), sends_(*parts.send_queue) {}

void UnacknowledgedQueuePair::start_sending() {
  next_psn_ = Psn(attributes_.sq_psn);
  sends_.start();
  outbound_.reset();
}

Psn UnacknowledgedQueuePair::take_psn() {
  const Psn psn = next_psn_;
  next_psn_ = Psn(psn.value() + 1);
  return psn;
}

void UnacknowledgedQueuePair::fail_send(const queue::Wqe& wqe, const queue::SgFault& fault) {
  reasons_.add("send wr_id 0x%llx: %s; completes with LOC_PROT_ERR", static_cast<unsigned long long>(wqe.wr_id),
               describe(fault).c_str());
  fail_send(WcStatus::LocProtErr);
}

void UnacknowledgedQueuePair::fail_send(WcStatus status) {
  if (sends_.fail(status)) enter_send_error();
}

bool UnacknowledgedQueuePair::fails_by_force(const queue::Wqe& wqe) {
  if (wqe.forced_status == WcStatus::Success) return false;
  reasons_.add_forced(wqe);
  fail_send(wqe.forced_status);
  return true;
}

void UnacknowledgedQueuePair::on_sent() {
  if (sends_.on_sent()) enter_send_error();
  tell_if_drained();
  fail_if_cq_overran();
}

void UnacknowledgedQueuePair::on_packet(queue::Instant, const PacketView& packet, const InDatagram& datagram) {
  const OpcodeInfo* info = find_opcode(packet.headers.bth.opcode);
  if (info == nullptr || info->service != service()) {
    ++counters_.wrong_service;
  } else if (!is_receiving()) {
    ++counters_.wrong_state;
  } else {
    receive(packet, *info, datagram);
    fail_if_cq_overran();
  }
}

}  // namespace nicless::wire
