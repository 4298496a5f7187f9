// SPDX-License-Identifier: MIT
// Goal: the datagram header reads and writes as IBTA 9.3.2 says. Method: captured bytes, and round trips.
#include "wire/packet/deth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("a captured DETH decodes to its fields and encodes to its bytes", "[packet][deth]") {
  const Deth deth{0x01234567, queue::Qpn(0x28)};
  CHECK(test::decoded<Deth>("0123456700000028") == deth);
  CHECK(test::encoded_hex(deth) == "0123456700000028");
}

TEST_CASE("the reserved byte of a DETH is ignored in and zero out", "[packet][deth]") {
  const Deth deth = test::decoded<Deth>("80010000ff000001");
  CHECK(deth == Deth{0x80010000, queue::Qpn(1)});
  CHECK(test::encoded_hex(deth) == "8001000000000001");
}
