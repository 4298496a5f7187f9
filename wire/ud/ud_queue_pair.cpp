// SPDX-License-Identifier: MIT
#include "wire/ud/ud_queue_pair.h"

#include <cerrno>

#include "queue/format.h"
#include "wire/addressing.h"
#include "wire/qp/source_port.h"
#include "wire/ud/grh.h"

namespace nicless::wire {

using queue::SendOpcode;
using queue::WcStatus;

namespace {

// With the top bit set, the Q_Key of the work request gives way to the queue pair's own. IBTA 10.2.5.
constexpr std::uint32_t kOwnQkeyBit = 0x80000000;

std::optional<queue::SgFault> fill(const queue::SgCursor& list, const PacketView& packet, const InDatagram& datagram) {
  if (kGrhBytes + packet.payload.size() > list.usable_length()) return list.fault();
  if (auto fault = list.scatter(0, make_grh(datagram))) return fault;
  return list.scatter(kGrhBytes, packet.payload);
}

}  // namespace

UdQueuePair::UdQueuePair(const QpParts& parts)
    : UnacknowledgedQueuePair(Transport::Ud, parts), cursor_(receive_sge_max(parts)) {
  receive_.reserve(receive_sge_max(parts));
}

queue::Result<void> UdQueuePair::check_opcode(const queue::Wqe& request) const {
  if (request.opcode == SendOpcode::Send || request.opcode == SendOpcode::SendImm) return {};
  return queue::error(EINVAL, queue::format("%s is not an operation of unreliable datagrams, which only send",
                                            queue::to_string(request.opcode)));
}

bool UdQueuePair::next_datagram(queue::Instant, OutDatagram& out) {
  if (state() != QpState::Rts) return false;
  const queue::Wqe* next = sends_.next();
  if (next == nullptr) return false;
  const queue::Wqe& wqe = *next;
  if (fails_by_force(wqe)) return false;
  if (wqe.length > parts_.port_mtu) {
    reasons_.add("send wr_id 0x%llx: a datagram of %llu bytes does not fit the MTU of %u; completes with LOC_LEN_ERR",
                 static_cast<unsigned long long>(wqe.wr_id), static_cast<unsigned long long>(wqe.length),
                 unsigned{parts_.port_mtu});
    fail_send(WcStatus::LocLenErr);
    return false;
  }
  out.span_count = 0;
  out.payload_bytes = 0;
  if (const auto fault = outbound_.append_bytes(sends_.next_seq(), wqe, 0, wqe.length, out)) {
    fail_send(wqe, *fault);
    return false;
  }
  build_headers(wqe, out);
  sends_.handed_out();
  return true;
}

void UdQueuePair::build_headers(const queue::Wqe& wqe, OutDatagram& out) {
  const queue::DatagramAddress& to = wqe.datagram;
  out.from = Endpoint{Gid{to.local_gid}, datagram_source_port(to.flow_label, parts_.qpn)};
  out.to = Endpoint{Gid{to.remote_gid}, 0};
  out.ip = IpOptions{to.traffic_class, to.hop_limit};
  Headers headers;
  const Op op = wqe.opcode == SendOpcode::SendImm ? Op::SendOnlyImm : Op::SendOnly;
  headers.bth.opcode = opcode_of(Service::Ud, op);
  headers.bth.solicited = wqe.solicited;
  headers.bth.dest_qp = to.remote_qpn;
  headers.bth.psn = take_psn();
  headers.deth.qkey = (to.remote_qkey & kOwnQkeyBit) ? attributes_.qkey : to.remote_qkey;
  headers.deth.src_qp = parts_.qpn;
  headers.imm.network_order = wqe.imm_or_key;
  finish_headers(headers, out);
}

void UdQueuePair::receive(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) {
  // Each is said once: the peer, who may be anybody, does not fill the log.
  const Deth& deth = packet.headers.deth;
  if (deth.qkey != attributes_.qkey) {
    if (counters_.wrong_qkey++ == 0) {
      reasons_.add("dropped a datagram from qp 0x%06x of %s: its Q_Key is 0x%x, the one of this queue pair 0x%x",
                   deth.src_qp.value(), to_string(datagram.from.address).c_str(), deth.qkey, attributes_.qkey);
    }
  } else if (!parts_.receives->take(receive_)) {
    if (is_own_copy(packet)) {
      ++counters_.no_receive;
    } else if (counters_.no_receive++ == 0) {
      reasons_.add("dropped a datagram from qp 0x%06x of %s: no receive was posted, and the sender does not hear of it",
                   deth.src_qp.value(), to_string(datagram.from.address).c_str());
    }
  } else {
    place(packet, info, datagram);
  }
}

// Of what this process sends to a group that this queue pair is in: whoever only sends there posts no receives. The
// numbers of a process are neighbours; that a stranger's is among them costs a sentence.
bool UdQueuePair::is_own_copy(const PacketView& packet) const {
  const auto neighbourhood = [](queue::Qpn qpn) { return qpn.value() >> 8; };
  return packet.headers.bth.dest_qp == kMulticastQpn &&
         neighbourhood(packet.headers.deth.src_qp) == neighbourhood(parts_.qpn);
}

// The first 40 bytes of the list are the GRH's, whatever it says; the payload stands behind. ibv_create_qp(3), UD.
void UdQueuePair::place(const PacketView& packet, const OpcodeInfo& info, const InDatagram& datagram) {
  queue::Completion completion;
  completion.wr_id = receive_.wr_id;
  completion.opcode = queue::WcOpcode::Recv;
  completion.qp_num = parts_.qpn;
  completion.credit = &parts_.receives->credit();
  completion.credit_count = 1;

  static_cast<void>(
      cursor_.resolve(*parts_.regions, receiving_of(parts_).list_pd, receive_.sges(), queue::kAccessLocalWrite));
  const std::uint64_t bytes = kGrhBytes + packet.payload.size();
  if (bytes > cursor_.length()) {
    reasons_.add(
        "recv wr_id 0x%llx: a datagram of %zu bytes and the 40 of its GRH do not fit the %llu bytes posted; "
        "completes with LOC_LEN_ERR",
        static_cast<unsigned long long>(receive_.wr_id), packet.payload.size(),
        static_cast<unsigned long long>(cursor_.length()));
    completion.status = WcStatus::LocLenErr;
  } else if (const auto fault = fill(cursor_, packet, datagram)) {
    reasons_.add("recv wr_id 0x%llx: %s; completes with LOC_PROT_ERR", static_cast<unsigned long long>(receive_.wr_id),
                 describe(*fault).c_str());
    completion.status = WcStatus::LocProtErr;
  }
  if (completion.status != WcStatus::Success) {
    parts_.recv_cq->push(completion);
    return enter_error();
  }
  completion.byte_len = static_cast<std::uint32_t>(bytes);
  completion.src_qp = packet.headers.deth.src_qp;
  completion.solicited = packet.headers.bth.solicited;
  completion.imm_or_key = packet.headers.imm.network_order;
  completion.flags = static_cast<std::uint8_t>(queue::kWcGrh | (info.has_imm ? queue::kWcWithImm : 0));
  parts_.recv_cq->push(completion);
}

}  // namespace nicless::wire
