// SPDX-License-Identifier: MIT
// The golden packets of tests/golden as values (README.md there has the format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/packet/endpoint.h"

namespace nicless::test {

struct GoldenPacket {
  std::string where;  // "rping-C2.hex:4", for failure messages
  std::string words;  // what another program reads in it
  wire::Endpoint from;
  wire::Endpoint to;
  std::uint16_t ip_id = 0;
  std::vector<std::byte> bytes;  // UDP payload
};

// Every packet of every file, files in the order of their names. Throws when a file is not as it should be.
std::vector<GoldenPacket> golden_packets();
// Those of one file: golden_packets("rping-C2").
std::vector<GoldenPacket> golden_packets(const std::string& name);

}  // namespace nicless::test
