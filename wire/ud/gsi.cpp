// SPDX-License-Identifier: MIT
#include "wire/ud/gsi.h"

#include <algorithm>

#include "wire/addressing.h"
#include "wire/packet/mad.h"
#include "wire/packet/opcode.h"
#include "wire/packet/packet.h"
#include "wire/qp/source_port.h"

namespace nicless::wire {

namespace {

constexpr std::uint16_t kGsiSourcePort = datagram_source_port(0, kGsiQpn);
constexpr std::uint8_t kMadOpcode = opcode_of(Service::Ud, Op::SendOnly);

bool is_mad(const PacketView& packet) {
  return packet.headers.bth.opcode == kMadOpcode && packet.headers.deth.qkey == kGsiQkey &&
         packet.payload.size() == kMadBytes &&
         check_cm(packet.payload.first<kMadBytes>()) == CmDecodeError::None;  // no other manager is here
}

}  // namespace

void Gsi::on_packet(const PacketView& packet, const InDatagram& datagram) {
  if (!is_mad(packet) || inbox_.size() >= kGsiInboxMax) {
    ++dropped_;
    return;
  }
  Mad& mad = inbox_.emplace_back();
  mad.from = datagram.from;
  mad.to = datagram.to;
  std::copy(packet.payload.begin(), packet.payload.end(), mad.bytes.begin());
}

std::optional<Mad> Gsi::take() {
  if (inbox_.empty()) return std::nullopt;
  const Mad mad = inbox_.front();
  inbox_.pop_front();
  return mad;
}

bool Gsi::next_datagram(OutDatagram& out) {
  if (outbox_.empty()) return false;
  const Mad& mad = outbox_.front();
  out.from = {mad.from.address, kGsiSourcePort};
  out.to = mad.to;
  out.ip = mad.ip;
  out.own_payload = mad.bytes;
  out.spans[0] = out.own_payload;
  out.span_count = 1;
  out.payload_bytes = kMadBytes;

  Headers headers;
  headers.bth.opcode = kMadOpcode;
  headers.bth.dest_qp = kGsiQpn;
  headers.bth.ack_req = true;  // as Soft-RoCE sends its MADs; nobody acknowledges a datagram
  headers.bth.psn = Psn(next_psn_++);
  headers.deth = {kGsiQkey, kGsiQpn};
  finish_headers(headers, out);
  outbox_.pop_front();
  return true;
}

}  // namespace nicless::wire
