// SPDX-License-Identifier: MIT
#include "wire/packet/print.h"

#include <cinttypes>

#include "wire/packet/text.h"

namespace nicless::wire {
namespace {

void append_bth(std::string& text, const Bth& bth) {
  append(text, " qp=%06x psn=%06x a=%d se=%d pad=%d", bth.dest_qp.value(), bth.psn.value(), bth.ack_req, bth.solicited,
         bth.pad_count);
  // What is nearly always the same is shown when it is not.
  if (bth.pkey != 0xffff) append(text, " pkey=%04x", bth.pkey);
  if (bth.mig_req) append(text, " m=1");
  if (bth.reserved8a != 0) append(text, " r8a=%02x", bth.reserved8a);
}

const char* name_of(NakCode code) {
  switch (code) {
    case NakCode::PsnSequenceError:
      return "PSN_SEQ_ERR";
    case NakCode::InvalidRequest:
      return "INV_REQ";
    case NakCode::RemoteAccessError:
      return "REM_ACCESS";
    case NakCode::RemoteOperationalError:
      return "REM_OP";
    case NakCode::InvalidRdRequest:
      return "INV_RD_REQ";
  }
  return "reserved";
}

void append_aeth(std::string& text, const Aeth& aeth) {
  append(text, " aeth[syn=%02x ", aeth.syndrome);
  switch (aeth.kind()) {
    case Aeth::Kind::Ack:
      append(text, "ACK cr=%d", aeth.syndrome & 31);
      break;
    case Aeth::Kind::Rnr:
      append(text, "RNR timer=%d", aeth.rnr_timer());
      break;
    case Aeth::Kind::Nak:
      append(text, "NAK %s", name_of(aeth.nak_code()));
      break;
    case Aeth::Kind::Reserved:
      append(text, "reserved");
      break;
  }
  append(text, " msn=%06x]", aeth.msn);
}

void append_imm(std::string& text, const Imm& imm) {
  std::array<std::byte, Imm::kSize> bytes{};
  imm.encode(bytes);
  text += " imm=";
  append_hex(text, bytes);
}

void append_extended(std::string& text, const OpcodeInfo& info, const Headers& h) {
  if (info.has_deth) append(text, " qkey=%08x sqp=%06x", h.deth.qkey, h.deth.src_qp.value());
  if (info.has_xrceth) append(text, " srqn=%06x", h.xrc.srqn.value());
  if (info.has_reth) {
    append(text, " reth[va=%016" PRIx64 " rkey=%08x len=%u]", h.reth.address, h.reth.rkey.value(), h.reth.length);
  }
  if (info.has_atomic) {
    append(text, " atm[va=%016" PRIx64 " rkey=%08x swap_add=%016" PRIx64 " cmp=%016" PRIx64 "]", h.atomic.address,
           h.atomic.rkey.value(), h.atomic.swap_add, h.atomic.compare);
  }
  if (info.has_aeth) append_aeth(text, h.aeth);
  if (info.has_atomic_ack) append(text, " orig=%016" PRIx64, h.atomic_ack.original);
  if (info.has_imm) append_imm(text, h.imm);
  if (info.has_ieth) append(text, " inv_rkey=%08x", h.ieth.rkey.value());
}

constexpr queue::Qpn kManagementQpn{1};

bool is_management(const Headers& headers, std::span<const std::byte> payload) {
  return headers.bth.opcode == opcode_of(Service::Ud, Op::SendOnly) && headers.bth.dest_qp == kManagementQpn &&
         payload.size() == CmMessage::kSize;
}

void append_mad(std::string& text, std::span<const std::byte, CmMessage::kSize> bytes) {
  const DecodedCm decoded = decode_cm(bytes);
  text += decoded ? " " : " MAD: ";
  text += decoded ? to_string(decoded.message) : describe(decoded.error);
}

}  // namespace

std::string to_string(const PacketView& packet) {
  const Headers& headers = packet.headers;
  const OpcodeInfo* info = find_opcode(headers.bth.opcode);
  std::string text;
  if (info == nullptr) {
    append(text, "opcode=%02x", headers.bth.opcode);
  } else {
    text += info->name;
  }
  append_bth(text, headers.bth);
  if (info != nullptr) append_extended(text, *info, headers);
  append(text, " len=%zu", packet.payload.size());
  if (is_management(headers, packet.payload)) append_mad(text, packet.payload.first<CmMessage::kSize>());
  return text;
}

std::string datagram_to_string(std::span<const std::byte> bytes, const Endpoint& from, const Endpoint& to) {
  std::string text = to_string(from) + ">" + to_string(to) + " ";
  const Decoded decoded = decode(bytes);
  if (decoded) return text + to_string(decoded.packet);
  append(text, "not a packet: %s, %zu bytes", describe(decoded.error), bytes.size());
  return text;
}

}  // namespace nicless::wire
