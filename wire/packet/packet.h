// SPDX-License-Identifier: MIT
// One RoCE v2 packet as values: the BTH, the extended headers its opcode calls for, and a view of the payload. Bytes
// become a PacketView at one door (decode) and leave through one (encode + seal). IBTA 5.2, 9.2 to 9.4; A17.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "wire/packet/aeth.h"
#include "wire/packet/atomic_eth.h"
#include "wire/packet/bth.h"
#include "wire/packet/deth.h"
#include "wire/packet/endpoint.h"
#include "wire/packet/imm.h"
#include "wire/packet/opcode.h"
#include "wire/packet/reth.h"
#include "wire/packet/xrceth.h"

namespace nicless::wire {

// Which extended headers are present is fixed by bth.opcode (opcode.h): encode writes exactly those and reads them from
// here, decode fills exactly those. The others keep their zeros, so that whole packets compare.
struct Headers {
  Bth bth;
  Reth reth;
  Aeth aeth;
  AtomicEth atomic;
  AtomicAckEth atomic_ack;
  Deth deth;
  Imm imm;
  Ieth ieth;
  XrcEth xrc;
  friend bool operator==(const Headers&, const Headers&) = default;
};

struct PacketView {
  Headers headers;
  std::span<const std::byte> payload;  // without pad and ICRC; points into the datagram
};

// Why a datagram is not a packet; each has a counter.
enum class DecodeError : std::uint8_t {
  None,
  Truncated,      // shorter than its headers, its pad and the ICRC
  BadVersion,     // BTH.TVer is not 0
  UnknownOpcode,  // no such transport service or operation
  BadPad,         // PadCnt longer than the payload
  BadIcrc,
};
const char* describe(DecodeError error);

struct Decoded {
  DecodeError error = DecodeError::None;
  PacketView packet;
  explicit operator bool() const { return error == DecodeError::None; }
};

// The UDP payload of a RoCE v2 packet: BTH to ICRC. Does not look at the ICRC (icrc.h does).
Decoded decode(std::span<const std::byte> datagram);

inline constexpr std::size_t kHeaderBytesMax = 12 + 8 + 28 + 4;  // BTH + DETH or XRCETH + AtomicETH + ImmDt or IETH
inline constexpr std::size_t kIcrcBytes = 4;
inline constexpr std::size_t kTrailerBytesMax = 3 + kIcrcBytes;  // pad and ICRC

// Writes BTH and extended headers; returns how many bytes. bth.pad_count must already fit the payload (pad_for).
std::size_t encode(const Headers& headers, std::span<std::byte, kHeaderBytesMax> out);

// Pad bytes that bring a payload to a multiple of four. IBTA 9.2.2.
constexpr std::uint8_t pad_for(std::size_t payload_bytes) {
  return static_cast<std::uint8_t>((4 - payload_bytes % 4) % 4);
}

}  // namespace nicless::wire
