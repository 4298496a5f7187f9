// SPDX-License-Identifier: MIT
// Goal: the atomic headers read and write as IBTA 9.3.4 and 9.5.3 say. Method: captured bytes, and round trips.
#include "wire/packet/atomic_eth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("an AtomicETH puts swap before compare", "[packet][atomic]") {
  const AtomicEth atomic{0x5626a1db3000, queue::RKey(0x3509), 5, 0x1122334455667788};
  const char* hex = "00005626a1db3000 00003509 0000000000000005 1122334455667788";
  CHECK(test::decoded<AtomicEth>(hex) == atomic);
  CHECK(test::encoded_hex(atomic) == test::hex_of(test::bytes_of(hex)));
}

TEST_CASE("a captured AtomicAckETH decodes and encodes", "[packet][atomic]") {
  const AtomicAckEth ack{0xe9745dbb0435e749};
  CHECK(test::decoded<AtomicAckEth>("e9745dbb0435e749") == ack);
  CHECK(test::encoded_hex(ack) == "e9745dbb0435e749");
}

TEST_CASE("every AtomicETH comes back as it went", "[packet][atomic]") {
  const auto number = GENERATE(as<std::uint64_t>{}, 0, 1, 0x0123456789abcdef, ~0ull);
  const AtomicEth atomic{~number, queue::RKey(0xfffffffe), number, number ^ 0xff};
  CHECK(AtomicEth::decode(test::encoded(atomic)) == atomic);
}
