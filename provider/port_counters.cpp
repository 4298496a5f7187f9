// SPDX-License-Identifier: MIT
#include "provider/port_counters.h"

#include <cstring>

namespace nicless::provider {

void add(const PortCounters& more, PortCounters& to) {
  wire::add(more.engine, to.engine);
  wire::add(more.queue_pairs, to.queue_pairs);
}

std::vector<NamedCount> named(const PortCounters& counters) {
  std::vector<NamedCount> all;
  for (const auto& counter : wire::kEngineCounterNames) all.push_back({counter.name, counters.engine.*counter.member});
  for (const auto& counter : wire::kQpCounterNames) {
    all.push_back({counter.name, counters.queue_pairs.*counter.member});
  }
  return all;
}

std::string summary(const PortCounters& counters) {
  std::string text = "packets: " + std::to_string(counters.engine.datagrams_out) + " sent, " +
                     std::to_string(counters.engine.datagrams_in) + " received";
  const char* separator = "; ";
  for (const NamedCount& each : named(counters)) {
    const bool is_said = std::strcmp(each.name, "sent_pkts") == 0 || std::strcmp(each.name, "rcvd_pkts") == 0;
    if (each.count == 0 || is_said) continue;
    text.append(separator).append(each.name).append(" ").append(std::to_string(each.count));
    separator = ", ";
  }
  return text;
}

}  // namespace nicless::provider
