// SPDX-License-Identifier: MIT
#include "wire/qp/outbound.h"

#include <algorithm>

#include "queue/format.h"

namespace nicless::wire {

using queue::SendOpcode;
using queue::SgFault;
using queue::Wqe;

namespace {

bool is_write(const Wqe& wqe) {
  return wqe.opcode == SendOpcode::Write || wqe.opcode == SendOpcode::WriteImm;
}

bool has_imm(const Wqe& wqe) {
  return wqe.opcode == SendOpcode::WriteImm || wqe.opcode == SendOpcode::SendImm;
}

// The operation of one packet of a message; what ends it depends on what the work request carries.
Op op_of(const Wqe& wqe, bool is_first, bool is_last) {
  if (!is_last) {
    if (is_write(wqe)) return is_first ? Op::WriteFirst : Op::WriteMiddle;
    return is_first ? Op::SendFirst : Op::SendMiddle;
  }
  if (is_write(wqe)) {
    if (is_first) return has_imm(wqe) ? Op::WriteOnlyImm : Op::WriteOnly;
    return has_imm(wqe) ? Op::WriteLastImm : Op::WriteLast;
  }
  if (wqe.opcode == SendOpcode::SendInv) return is_first ? Op::SendOnlyInv : Op::SendLastInv;
  if (is_first) return has_imm(wqe) ? Op::SendOnlyImm : Op::SendOnly;
  return has_imm(wqe) ? Op::SendLastImm : Op::SendLast;
}

}  // namespace

Headers headers_for(const QpAttributes& attributes, Op op, const Outbound::Numbers& numbers) {
  Headers headers;
  headers.bth.opcode = opcode_of(numbers.service, op);
  headers.bth.dest_qp = attributes.dest_qpn;
  headers.bth.psn = numbers.psn;
  headers.bth.ack_req = numbers.wants_ack;
  headers.xrc.srqn = numbers.srqn;
  return headers;
}

std::string describe_failure(const Wqe& wqe, const queue::Error& error) {
  const auto wr_id = static_cast<unsigned long long>(wqe.wr_id);
  if (wqe.opcode == SendOpcode::BindMw) {
    return queue::format("bind wr_id 0x%llx: %s; completes with MW_BIND_ERR", wr_id, error.why.c_str());
  }
  return queue::format("local invalidate wr_id 0x%llx: rkey 0x%x %s; completes with MW_BIND_ERR", wr_id, wqe.imm_or_key,
                       error.why.c_str());
}

std::optional<SgFault> Outbound::look_up(std::uint64_t seq, const Wqe& wqe, std::uint32_t access) {
  if (wqe.has_inline_data) return std::nullopt;
  cursor_seq_ = seq;
  return cursor_.resolve(*parts_.regions, parts_.pd, wqe.sges, access);
}

std::optional<SgFault> Outbound::build(std::uint64_t seq, const Wqe& wqe, std::uint64_t packet, const Numbers& numbers,
                                       OutDatagram& out) {
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t offset = packet * mtu;
  begin_datagram(attributes_, out);
  if (auto fault = append_bytes(seq, wqe, offset, std::min(mtu, wqe.length - offset), out)) return fault;

  const bool is_middle = packet != 0 && !is_last(wqe, packet);
  if (is_middle && middle_seq_ == seq) {
    build_next_middle(numbers, out);
    return std::nullopt;
  }
  build_headers(wqe, packet, numbers, out);
  if (is_middle) {
    middle_seq_ = seq;
    middle_header_bytes_ = out.header_bytes;
    std::copy_n(out.header.begin(), middle_header_.size(), middle_header_.begin());
  }
  return std::nullopt;
}

void Outbound::build_headers(const Wqe& wqe, std::uint64_t packet, const Numbers& numbers, OutDatagram& out) {
  const bool is_end = is_last(wqe, packet);
  Headers headers = headers_for(attributes_, op_of(wqe, packet == 0, is_end), numbers);
  headers.bth.solicited = is_end && wqe.solicited;
  headers.imm.network_order = wqe.imm_or_key;
  headers.ieth.rkey = queue::RKey(wqe.imm_or_key);
  if (packet == 0) headers.reth = Reth{wqe.remote_addr, wqe.rkey, static_cast<std::uint32_t>(wqe.length)};
  finish_headers(headers, out);
}

// A middle packet is full, so it has no pad.
void Outbound::build_next_middle(const Numbers& numbers, OutDatagram& out) {
  std::ranges::copy(middle_header_, out.header.begin());
  Bth::renumber(std::span(out.header).first<Bth::kSize>(), numbers.psn, numbers.wants_ack);
  out.header_bytes = middle_header_bytes_;
  out.dest_qp = attributes_.dest_qpn;
  out.pad_bytes = 0;
}

queue::Result<void> Outbound::carry_out(const Wqe& wqe) {
  const queue::Accessor self{parts_.pd, parts_.qpn};
  if (wqe.opcode == SendOpcode::BindMw) return parts_.regions->bind(self, queue::Binding::of(wqe));
  return parts_.regions->invalidate(self, queue::RKey{wqe.imm_or_key});
}

std::optional<SgFault> Outbound::append_bytes(std::uint64_t seq, const Wqe& wqe, std::uint64_t offset,
                                              std::uint64_t length, OutDatagram& out) {
  if (wqe.has_inline_data) {
    append_payload(out, wqe.inline_data.subspan(offset, length));
    return std::nullopt;
  }
  // A resend may be of an earlier list than the last one looked at; and a region may have gone meanwhile.
  const auto fault = cursor_seq_ == seq ? cursor_.refresh(*parts_.regions) : look_up(seq, wqe, 0);
  if (fault) return fault;
  const auto gathered = cursor_.gather(offset, length, std::span<std::span<const std::byte>>(out.spans));
  out.span_count = gathered.spans;
  out.payload_bytes = length;
  return gathered.fault;
}

}  // namespace nicless::wire
