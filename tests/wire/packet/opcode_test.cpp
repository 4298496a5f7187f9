// SPDX-License-Identifier: MIT
// Goal: the opcode table says of each opcode what IBTA table 38 says. Method: whole properties over all 256 values, and
// the header sizes written out.
#include "wire/packet/opcode.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

using namespace nicless::wire;

TEST_CASE("60 opcodes are known: 23 each of RC and XRC, 12 of UC, 2 of UD", "[packet][opcode]") {
  int per_service[8] = {};
  std::set<std::string> names;
  for (int opcode = 0; opcode < 256; ++opcode) {
    const OpcodeInfo* info = find_opcode(static_cast<std::uint8_t>(opcode));
    if (info == nullptr) continue;
    ++per_service[opcode >> 5];
    names.insert(info->name);
    CHECK(opcode_of(info->service, info->op) == opcode);
  }
  CHECK(per_service[0] == 23);
  CHECK(per_service[1] == 12);
  CHECK(per_service[3] == 2);
  CHECK(per_service[5] == 23);
  CHECK(names.size() == 23 + 12 + 2 + 23);  // no two share a name
}

TEST_CASE("the headers of an opcode add up to its size", "[packet][opcode]") {
  const auto size_of = [](Service service, Op op) { return int{find_opcode(opcode_of(service, op))->header_bytes}; };
  CHECK(size_of(Service::Rc, Op::SendOnly) == 12);
  CHECK(size_of(Service::Rc, Op::SendOnlyImm) == 16);
  CHECK(size_of(Service::Rc, Op::SendLastInv) == 16);
  CHECK(size_of(Service::Rc, Op::WriteOnlyImm) == 32);
  CHECK(size_of(Service::Rc, Op::ReadRequest) == 28);
  CHECK(size_of(Service::Rc, Op::ReadResponseMiddle) == 12);
  CHECK(size_of(Service::Rc, Op::Acknowledge) == 16);
  CHECK(size_of(Service::Rc, Op::AtomicAcknowledge) == 24);
  CHECK(size_of(Service::Rc, Op::FetchAdd) == 40);
  CHECK(size_of(Service::Ud, Op::SendOnlyImm) == 24);
  CHECK(size_of(Service::Xrc, Op::CompareSwap) == 44);
  CHECK(size_of(Service::Xrc, Op::Acknowledge) == 16);
}

TEST_CASE("what a service lacks is unknown", "[packet][opcode]") {
  CHECK(find_opcode(opcode_of(Service::Uc, Op::ReadRequest)) == nullptr);
  CHECK(find_opcode(opcode_of(Service::Ud, Op::SendFirst)) == nullptr);
  CHECK(find_opcode(opcode_of(Service::Rd, Op::SendOnly)) == nullptr);
  CHECK(find_opcode(0x15) == nullptr);
  CHECK(find_opcode(0xff) == nullptr);
}

TEST_CASE("requests and responses carry payload where the table says", "[packet][opcode]") {
  CHECK(find_opcode(opcode_of(Service::Rc, Op::WriteMiddle))->has_payload);
  CHECK(find_opcode(opcode_of(Service::Rc, Op::ReadResponseOnly))->has_payload);
  CHECK_FALSE(find_opcode(opcode_of(Service::Rc, Op::ReadRequest))->has_payload);
  CHECK_FALSE(find_opcode(opcode_of(Service::Rc, Op::Acknowledge))->has_payload);
  CHECK_FALSE(find_opcode(opcode_of(Service::Rc, Op::FetchAdd))->has_payload);
}
