// SPDX-License-Identifier: MIT
#include <cstdio>

#include "tests/sim/unreliable_traffic.h"

namespace nicless::sim {

UnreliableConfig UnreliableConfig::of(std::uint64_t seed, wire::Transport transport) {
  queue::Rng rng(seed ^ 0x756e72656c696162);
  UnreliableConfig config;
  config.seed = seed;
  config.faults = rng.chance(0.15) ? wire::LinkConfig{} : random_faults(rng);
  config.side.transport = transport;
  config.side.send_depth = 4 + rng.below(60);
  config.side.recv_depth = 2 + rng.below(60);
  config.side.inline_max = any_of(rng, {0, 64, 220});
  config.side.signal_all = rng.chance(0.2);
  config.side.port_mtu = static_cast<std::uint16_t>(256 << rng.below(5));
  config.connection.path_mtu = config.side.port_mtu;
  config.messages_each = 20 + rng.below(100);
  config.late_receives = rng.chance(0.5) ? 0.7 : 0.0;
  config.mistakes = rng.chance(0.3) ? 0.05 : 0.0;
  config.drains = rng.chance(0.3) ? 0.1 : 0.0;
  config.is_short = rng.chance(0.2);
  if (transport == wire::Transport::Ud) config.packets_max = 1;
  return config;
}

std::string to_string(const UnreliableConfig& config) {
  char text[400];
  std::snprintf(
      text, sizeof text,
      "transport %d mtu %u loss %.3f duplicate %.3f reorder %.3f corrupt %.3f queue %zu, send depth %u recv depth "
      "%u, late %.1f mistakes %.2f drains %.1f short %d",
      static_cast<int>(config.side.transport), config.connection.path_mtu, config.faults.loss, config.faults.duplicate,
      config.faults.reorder, config.faults.corrupt, config.faults.queue_bytes, config.side.send_depth,
      config.side.recv_depth, config.late_receives, config.mistakes, config.drains, config.is_short);
  return text;
}

}  // namespace nicless::sim
