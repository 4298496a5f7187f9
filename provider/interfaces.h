// SPDX-License-Identifier: MIT
// The machine's network interfaces, as a device sees them: read once, by value. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "wire/packet/endpoint.h"

namespace nicless::provider {

struct Interface {
  std::string name;
  std::uint32_t index = 0;  // if_nametoindex(3)
  unsigned mtu_bytes = 0;
  bool running = false;  // has a carrier
  std::array<std::uint8_t, 6> mac{};
  std::vector<wire::Gid> addresses;  // in the kernel's order, IPv4 and IPv6
};

// The interfaces that are up, in the order of their indexes; those without an address too.
std::vector<Interface> read_interfaces();

}  // namespace nicless::provider
