// SPDX-License-Identifier: MIT
// Goal: the XRC header reads and writes as IBTA A14 says. Method: known bytes.
#include "wire/packet/xrceth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless::wire;
namespace test = nicless::test;

TEST_CASE("an XRCETH is an SRQ number behind a reserved byte", "[packet][xrc]") {
  CHECK(test::decoded<XrcEth>("ff8f1203") == XrcEth{nicless::queue::Srqn(0x8f1203)});
  CHECK(test::encoded_hex(XrcEth{nicless::queue::Srqn(0x8f1203)}) == "008f1203");
}
