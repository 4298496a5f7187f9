// SPDX-License-Identifier: MIT
// Goal: the acknowledge header and its syndromes read and write as IBTA 9.3.5 and table 57 say. Method: syndromes that
// Soft-RoCE sent, and round trips.
#include "wire/packet/aeth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless::wire;
namespace test = nicless::test;

TEST_CASE("an ACK gives no credits", "[packet][aeth]") {
  CHECK(test::encoded_hex(Aeth::ack(0x000104)) == "1f000104");
  CHECK(test::decoded<Aeth>("1f000104") == Aeth::ack(0x104));
  CHECK(test::decoded<Aeth>("1f000104").kind() == Aeth::Kind::Ack);
}

TEST_CASE("an RNR NAK carries its timer", "[packet][aeth]") {
  const auto timer = GENERATE(as<std::uint8_t>{}, 0, 12, 31);
  const Aeth aeth = Aeth::decode(test::encoded(Aeth::rnr(timer, 7)));
  CHECK(aeth == Aeth::rnr(timer, 7));
  CHECK(aeth.kind() == Aeth::Kind::Rnr);
  CHECK(aeth.rnr_timer() == timer);
}

TEST_CASE("a NAK carries its code", "[packet][aeth]") {
  const auto code = GENERATE(NakCode::PsnSequenceError, NakCode::InvalidRequest, NakCode::RemoteAccessError,
                             NakCode::RemoteOperationalError, NakCode::InvalidRdRequest);
  const Aeth aeth = Aeth::decode(test::encoded(Aeth::nak(code, 0xffffff)));
  CHECK(aeth == Aeth::nak(code, 0xffffff));
  CHECK(aeth.kind() == Aeth::Kind::Nak);
  CHECK(aeth.nak_code() == code);
}

TEST_CASE("a captured remote access NAK is 62", "[packet][aeth]") {
  CHECK(test::encoded_hex(Aeth::nak(NakCode::RemoteAccessError, 3)) == "62000003");
}
