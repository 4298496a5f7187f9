// SPDX-License-Identifier: MIT
// Goal: immediate data keeps its bytes whatever the host's byte order, and IETH is a key. Method: known bytes.
#include "wire/packet/imm.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("immediate data is the program's four bytes, never swapped", "[packet][imm]") {
  const Imm imm = test::decoded<Imm>("01020304");
  unsigned char in_memory[4];
  std::memcpy(in_memory, &imm.network_order, sizeof in_memory);
  CHECK(in_memory[0] == 1);
  CHECK(in_memory[3] == 4);
  CHECK(test::encoded_hex(imm) == "01020304");
}

TEST_CASE("an IETH carries the key to invalidate", "[packet][imm]") {
  CHECK(test::decoded<Ieth>("08000160") == Ieth{queue::RKey(0x08000160)});
  CHECK(test::encoded_hex(Ieth{queue::RKey(0x08000160)}) == "08000160");
}
