// SPDX-License-Identifier: MIT
#include "wire/packet/opcode.h"

#include <array>

#include "wire/packet/packet.h"

namespace nicless::wire {
namespace {

// Which extended headers an operation brings, whatever the service; the service adds DETH or XRCETH.
enum Bring : unsigned {
  kNothing = 0,
  kReth = 1,
  kAeth = 2,
  kAtomic = 4,
  kAtomicAck = 8,
  kImm = 16,
  kIeth = 32,
  kData = 64
};

using Table = std::array<OpcodeInfo, 256>;

constexpr bool is_response(Family family) {
  return family == Family::ReadResponse || family == Family::Acknowledge || family == Family::AtomicAcknowledge;
}

constexpr std::uint8_t header_bytes_of(const OpcodeInfo& info) {
  std::size_t bytes = Bth::kSize;
  if (info.has_deth) bytes += Deth::kSize;
  if (info.has_xrceth) bytes += XrcEth::kSize;
  if (info.has_reth) bytes += Reth::kSize;
  if (info.has_atomic) bytes += AtomicEth::kSize;
  if (info.has_aeth) bytes += Aeth::kSize;
  if (info.has_atomic_ack) bytes += AtomicAckEth::kSize;
  if (info.has_imm) bytes += Imm::kSize;
  if (info.has_ieth) bytes += Ieth::kSize;
  return static_cast<std::uint8_t>(bytes);
}

struct Row {
  Op op;
  Family family;
  Place place;
  unsigned brings;
  const char* rc;  // the name per service; null where the service lacks the operation
  const char* uc;
  const char* ud;
  const char* xrc;
};

#define RC_ONLY(name) "RC_" name, nullptr, nullptr, "XRC_" name
#define RC_UC(name) "RC_" name, "UC_" name, nullptr, "XRC_" name
#define RC_UC_UD(name) "RC_" name, "UC_" name, "UD_" name, "XRC_" name

// IBTA table 38 (9.2.1); A14 for XRC.
constexpr Row kRows[] = {
    {Op::SendFirst, Family::Send, Place::First, kData, RC_UC("SEND_FIRST")},
    {Op::SendMiddle, Family::Send, Place::Middle, kData, RC_UC("SEND_MIDDLE")},
    {Op::SendLast, Family::Send, Place::Last, kData, RC_UC("SEND_LAST")},
    {Op::SendLastImm, Family::Send, Place::Last, kData | kImm, RC_UC("SEND_LAST_IMM")},
    {Op::SendOnly, Family::Send, Place::Only, kData, RC_UC_UD("SEND_ONLY")},
    {Op::SendOnlyImm, Family::Send, Place::Only, kData | kImm, RC_UC_UD("SEND_ONLY_IMM")},
    {Op::WriteFirst, Family::Write, Place::First, kData | kReth, RC_UC("WRITE_FIRST")},
    {Op::WriteMiddle, Family::Write, Place::Middle, kData, RC_UC("WRITE_MIDDLE")},
    {Op::WriteLast, Family::Write, Place::Last, kData, RC_UC("WRITE_LAST")},
    {Op::WriteLastImm, Family::Write, Place::Last, kData | kImm, RC_UC("WRITE_LAST_IMM")},
    {Op::WriteOnly, Family::Write, Place::Only, kData | kReth, RC_UC("WRITE_ONLY")},
    {Op::WriteOnlyImm, Family::Write, Place::Only, kData | kReth | kImm, RC_UC("WRITE_ONLY_IMM")},
    {Op::ReadRequest, Family::ReadRequest, Place::Only, kReth, RC_ONLY("READ_REQ")},
    {Op::ReadResponseFirst, Family::ReadResponse, Place::First, kData | kAeth, RC_ONLY("READ_RESP_FIRST")},
    {Op::ReadResponseMiddle, Family::ReadResponse, Place::Middle, kData, RC_ONLY("READ_RESP_MIDDLE")},
    {Op::ReadResponseLast, Family::ReadResponse, Place::Last, kData | kAeth, RC_ONLY("READ_RESP_LAST")},
    {Op::ReadResponseOnly, Family::ReadResponse, Place::Only, kData | kAeth, RC_ONLY("READ_RESP_ONLY")},
    {Op::Acknowledge, Family::Acknowledge, Place::Only, kAeth, RC_ONLY("ACK")},
    {Op::AtomicAcknowledge, Family::AtomicAcknowledge, Place::Only, kAeth | kAtomicAck, RC_ONLY("ATOMIC_ACK")},
    {Op::CompareSwap, Family::Atomic, Place::Only, kAtomic, RC_ONLY("CMP_SWP")},
    {Op::FetchAdd, Family::Atomic, Place::Only, kAtomic, RC_ONLY("FETCH_ADD")},
    {Op::SendLastInv, Family::Send, Place::Last, kData | kIeth, RC_ONLY("SEND_LAST_INV")},
    {Op::SendOnlyInv, Family::Send, Place::Only, kData | kIeth, RC_ONLY("SEND_ONLY_INV")},
};

#undef RC_ONLY
#undef RC_UC
#undef RC_UC_UD

constexpr void add(Table& table, const Row& row, Service service, const char* name) {
  if (name == nullptr) return;
  OpcodeInfo info;
  info.name = name;
  info.service = service;
  info.op = row.op;
  info.family = row.family;
  info.place = row.place;
  info.has_reth = (row.brings & kReth) != 0;
  info.has_aeth = (row.brings & kAeth) != 0;
  info.has_atomic = (row.brings & kAtomic) != 0;
  info.has_atomic_ack = (row.brings & kAtomicAck) != 0;
  info.has_imm = (row.brings & kImm) != 0;
  info.has_ieth = (row.brings & kIeth) != 0;
  info.has_payload = (row.brings & kData) != 0;
  info.has_deth = service == Service::Ud;
  info.has_xrceth = service == Service::Xrc && !is_response(row.family);  // a response goes to a queue pair, not an SRQ
  info.header_bytes = header_bytes_of(info);
  table[opcode_of(service, row.op)] = info;
}

constexpr Table make_table() {
  Table table{};
  for (const Row& row : kRows) {
    add(table, row, Service::Rc, row.rc);
    add(table, row, Service::Uc, row.uc);
    add(table, row, Service::Ud, row.ud);
    add(table, row, Service::Xrc, row.xrc);
  }
  return table;
}

constexpr Table kTable = make_table();

constexpr bool fits_header_buffer() {
  for (const OpcodeInfo& info : kTable) {
    if (info.header_bytes > kHeaderBytesMax) return false;
  }
  return true;
}
static_assert(fits_header_buffer());

}  // namespace

const OpcodeInfo* find_opcode(std::uint8_t opcode) {
  const OpcodeInfo& info = kTable[opcode];
  return info.name == nullptr ? nullptr : &info;
}

}  // namespace nicless::wire
