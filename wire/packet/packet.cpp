// SPDX-License-Identifier: MIT
#include "wire/packet/packet.h"

#include "queue/check.h"

namespace nicless::wire {
namespace {

// Cuts the next header off the front. The caller has checked that OpcodeInfo::header_bytes are there.
template <typename Header>
Header take(std::span<const std::byte>& bytes) {
  const auto front = bytes.first<Header::kSize>();
  bytes = bytes.subspan(Header::kSize);
  return Header::decode(front);
}

template <typename Header>
void put(const Header& header, std::span<std::byte>& bytes) {
  header.encode(bytes.first<Header::kSize>());
  bytes = bytes.subspan(Header::kSize);
}

Decoded failed(DecodeError error) {
  return {error, {}};
}

// Cuts pad and ICRC off `rest`; nothing if they do not fit, or if the opcode has no payload and yet some is there.
// Payload and pad come in whole words, IBTA 9.2.2.
bool cut_payload(const OpcodeInfo& info, std::uint8_t pad_count, std::span<const std::byte> rest, PacketView& packet) {
  const std::size_t padded_bytes = rest.size() - kIcrcBytes;
  if (padded_bytes % 4 != 0 || pad_count > padded_bytes) return false;
  if (!info.has_payload && padded_bytes != 0) return false;
  packet.payload = rest.first(padded_bytes - pad_count);
  return true;
}

}  // namespace

const char* describe(DecodeError error) {
  switch (error) {
    case DecodeError::None:
      return "a packet";
    case DecodeError::Truncated:
      return "shorter than its headers and the ICRC";
    case DecodeError::BadVersion:
      return "transport header version is not 0";
    case DecodeError::UnknownOpcode:
      return "unknown opcode";
    case DecodeError::BadPad:
      return "the length does not fit the opcode and the pad count";
    case DecodeError::BadIcrc:
      return "bad ICRC";
  }
  return "?";
}

// The order of the extended headers is the one of IBTA figure 40 (5.2.1): DETH or XRCETH, RETH or AtomicETH, AETH,
// AtomicAckETH, ImmDt or IETH. encode() follows the same.
Decoded decode(std::span<const std::byte> datagram) {
  if (datagram.size() < Bth::kSize + kIcrcBytes) return failed(DecodeError::Truncated);
  std::span<const std::byte> rest = datagram;
  Decoded decoded;
  Headers& headers = decoded.packet.headers;
  headers.bth = take<Bth>(rest);
  if (headers.bth.version != 0) return failed(DecodeError::BadVersion);
  const OpcodeInfo* info = find_opcode(headers.bth.opcode);
  if (info == nullptr) return failed(DecodeError::UnknownOpcode);
  if (datagram.size() < info->header_bytes + kIcrcBytes) return failed(DecodeError::Truncated);
  if (info->has_deth) headers.deth = take<Deth>(rest);
  if (info->has_xrceth) headers.xrc = take<XrcEth>(rest);
  if (info->has_reth) headers.reth = take<Reth>(rest);
  if (info->has_atomic) headers.atomic = take<AtomicEth>(rest);
  if (info->has_aeth) headers.aeth = take<Aeth>(rest);
  if (info->has_atomic_ack) headers.atomic_ack = take<AtomicAckEth>(rest);
  if (info->has_imm) headers.imm = take<Imm>(rest);
  if (info->has_ieth) headers.ieth = take<Ieth>(rest);
  if (!cut_payload(*info, headers.bth.pad_count, rest, decoded.packet)) return failed(DecodeError::BadPad);
  return decoded;
}

std::size_t encode(const Headers& headers, std::span<std::byte, kHeaderBytesMax> out) {
  const OpcodeInfo* info = find_opcode(headers.bth.opcode);
  NICLESS_CHECK(info != nullptr);
  std::span<std::byte> rest = out;
  put(headers.bth, rest);
  if (info->has_deth) put(headers.deth, rest);
  if (info->has_xrceth) put(headers.xrc, rest);
  if (info->has_reth) put(headers.reth, rest);
  if (info->has_atomic) put(headers.atomic, rest);
  if (info->has_aeth) put(headers.aeth, rest);
  if (info->has_atomic_ack) put(headers.atomic_ack, rest);
  if (info->has_imm) put(headers.imm, rest);
  if (info->has_ieth) put(headers.ieth, rest);
  return out.size() - rest.size();
}

}  // namespace nicless::wire
