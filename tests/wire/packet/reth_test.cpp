// SPDX-License-Identifier: MIT
// Goal: the RDMA header reads and writes as IBTA 9.3.3 says. Method: captured bytes, and round trips.
#include "wire/packet/reth.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("a captured RETH decodes to its fields and encodes to its bytes", "[packet][reth]") {
  const char* hex = "00005564d39103700000215700000040";
  const Reth expected{0x5564d3910370, queue::RKey(0x2157), 64};
  CHECK(test::decoded<Reth>(hex) == expected);
  CHECK(test::encoded_hex(expected) == hex);
}

TEST_CASE("every RETH comes back as it went", "[packet][reth]") {
  const Reth reth{GENERATE(as<std::uint64_t>{}, 0, 0x0123456789abcdef, ~0ull), queue::RKey(GENERATE(0u, 0xfffffffeu)),
                  GENERATE(0u, 1u, 0x80000000u)};
  CHECK(Reth::decode(test::encoded(reth)) == reth);
}
