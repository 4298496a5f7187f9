// SPDX-License-Identifier: MIT
// Goal: the base transport header reads and writes as IBTA 9.2 draws it. Method: bytes that Soft-RoCE sent, each flag
// alone, and round trips from buffers that were not clean.
#include "wire/packet/bth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("a captured BTH decodes to its fields and encodes to its bytes", "[packet][bth]") {
  const char* hex = "0430ffff0000002c80f81f82";  // RC SEND only, 3 pad bytes, acknowledge requested
  Bth expected;
  expected.opcode = 0x04;
  expected.pad_count = 3;
  expected.dest_qp = queue::Qpn(0x2c);
  expected.ack_req = true;
  expected.psn = Psn(0xf81f82);
  CHECK(test::decoded<Bth>(hex) == expected);
  CHECK(test::encoded_hex(expected) == hex);
}

TEST_CASE("each bit of the BTH has its place", "[packet][bth]") {
  Bth bth;
  bth.pkey = 0;
  SECTION("solicited event") {
    bth.solicited = true;
    CHECK(test::encoded_hex(bth) == "008000000000000000000000");
  }
  SECTION("migration request") {
    bth.mig_req = true;
    CHECK(test::encoded_hex(bth) == "004000000000000000000000");
  }
  SECTION("version") {
    bth.version = 15;
    CHECK(test::encoded_hex(bth) == "000f00000000000000000000");
  }
  SECTION("congestion marks") {
    bth.reserved8a = 0xc0;
    CHECK(test::encoded_hex(bth) == "00000000c000000000000000");
  }
  CHECK(Bth::decode(test::encoded(bth)) == bth);
}

TEST_CASE("every BTH comes back as it went", "[packet][bth]") {
  Bth bth;
  bth.opcode = GENERATE(as<std::uint8_t>{}, 0, 0x64, 0xff);
  bth.solicited = GENERATE(false, true);
  bth.pad_count = GENERATE(as<std::uint8_t>{}, 0, 1, 2, 3);
  bth.pkey = GENERATE(as<std::uint16_t>{}, 0, 0x8001, 0xffff);
  bth.dest_qp = queue::Qpn(GENERATE(0u, 1u, 0x8f1203u, 0xffffffu));
  bth.psn = Psn(GENERATE(0u, 0x800000u, 0xffffffu));
  CHECK(Bth::decode(test::encoded(bth)) == bth);
}

TEST_CASE("a header that is renumbered is the one with that number", "[packet][bth]") {
  Bth bth;
  bth.opcode = 0x07;
  bth.dest_qp = queue::Qpn(0x8f1203);
  bth.psn = Psn(GENERATE(0u, 0xffffffu));
  bth.ack_req = GENERATE(false, true);
  auto bytes = test::encoded(bth);

  bth.psn = Psn(0x123456);
  bth.ack_req = !bth.ack_req;
  Bth::renumber(std::span(bytes).first<Bth::kSize>(), bth.psn, bth.ack_req);

  CHECK(bytes == test::encoded(bth));
}
