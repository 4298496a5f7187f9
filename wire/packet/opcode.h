// SPDX-License-Identifier: MIT
// One table for BTH opcodes, IBTA table 38 (9.2.1): three bits of transport service, five of operation, and with them
// which extended headers follow and where in its message a packet stands.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nicless::wire {

enum class Service : std::uint8_t { Rc = 0, Uc = 1, Rd = 2, Ud = 3, Cnp = 4, Xrc = 5 };

// The five low bits; the same in every service that has them.
enum class Op : std::uint8_t {
  SendFirst = 0x00,
  SendMiddle = 0x01,
  SendLast = 0x02,
  SendLastImm = 0x03,
  SendOnly = 0x04,
  SendOnlyImm = 0x05,
  WriteFirst = 0x06,
  WriteMiddle = 0x07,
  WriteLast = 0x08,
  WriteLastImm = 0x09,
  WriteOnly = 0x0a,
  WriteOnlyImm = 0x0b,
  ReadRequest = 0x0c,
  ReadResponseFirst = 0x0d,
  ReadResponseMiddle = 0x0e,
  ReadResponseLast = 0x0f,
  ReadResponseOnly = 0x10,
  Acknowledge = 0x11,
  AtomicAcknowledge = 0x12,
  CompareSwap = 0x13,
  FetchAdd = 0x14,
  SendLastInv = 0x16,
  SendOnlyInv = 0x17,
};

enum class Place : std::uint8_t { First, Middle, Last, Only };
enum class Family : std::uint8_t { Send, Write, ReadRequest, ReadResponse, Acknowledge, AtomicAcknowledge, Atomic };

// What one opcode means. Tables are constant; a pointer to an entry is good for ever.
struct OpcodeInfo {
  const char* name = nullptr;  // "RC_SEND_LAST_IMM"
  Service service = Service::Rc;
  Op op = Op::SendOnly;
  Family family = Family::Send;
  Place place = Place::Only;
  bool has_reth = false;
  bool has_aeth = false;
  bool has_atomic = false;
  bool has_atomic_ack = false;
  bool has_deth = false;
  bool has_imm = false;
  bool has_ieth = false;
  bool has_xrceth = false;
  bool has_payload = false;       // may carry payload
  std::uint8_t header_bytes = 0;  // BTH and all extended headers

  constexpr bool starts_message() const { return place == Place::First || place == Place::Only; }
  constexpr bool ends_message() const { return place == Place::Last || place == Place::Only; }
};

constexpr std::uint8_t opcode_of(Service service, Op op) {
  return static_cast<std::uint8_t>((static_cast<std::uint8_t>(service) << 5) | static_cast<std::uint8_t>(op));
}

// Null for an opcode this project does not know.
const OpcodeInfo* find_opcode(std::uint8_t opcode);

}  // namespace nicless::wire
