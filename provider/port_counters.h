// SPDX-License-Identifier: MIT
// What the ports of this process have counted, as a person asks for it: in one sentence at the end, at
// NICLESS_LOG=info, and by name while the process runs (/sys/class/infiniband/nicless0/ports/1/hw_counters). Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/counters.h"

namespace nicless::provider {

struct PortCounters {
  wire::EngineCounters engine;
  wire::QpCounters queue_pairs;
  friend bool operator==(const PortCounters&, const PortCounters&) = default;
};
void add(const PortCounters& more, PortCounters& to);

struct NamedCount {
  const char* name;
  std::uint64_t count;
  friend bool operator==(const NamedCount&, const NamedCount&) = default;
};
// All of them, always in the same order.
std::vector<NamedCount> named(const PortCounters& counters);

// "packets: 1868 sent, 1790 received; duplicate_request 3, rx_icrc_encapsulated 13": of the names those that counted.
std::string summary(const PortCounters& counters);

}  // namespace nicless::provider
