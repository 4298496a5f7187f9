// SPDX-License-Identifier: MIT
#include "tests/sim/traffic_config.h"

#include <algorithm>
#include <cstdio>

namespace nicless::sim {

using std::chrono::microseconds;

std::uint8_t any_of(queue::Rng& rng, std::initializer_list<int> values) {
  return static_cast<std::uint8_t>(*(values.begin() + rng.below(static_cast<std::uint32_t>(values.size()))));
}

wire::LinkConfig random_faults(queue::Rng& rng) {
  wire::LinkConfig faults;
  faults.latency = microseconds(1 + rng.below(50));
  faults.jitter = rng.chance(0.5) ? microseconds(rng.below(20)) : microseconds(0);
  const auto maybe = [&](double most) { return rng.chance(0.6) ? most * rng.below(1000) / 1000 : 0.0; };
  faults.loss = maybe(0.08);
  faults.duplicate = maybe(0.08);
  faults.reorder = maybe(0.05);
  faults.reorder_delay = microseconds(1 + rng.below(300));
  faults.corrupt = maybe(0.03);
  if (rng.chance(0.3)) {
    faults.bytes_per_second = 50'000'000 + rng.below(1'000'000'000);
    faults.queue_bytes = 48 * 1024 + rng.below(256 * 1024);
  }
  return faults;
}

std::uint32_t random_psn(queue::Rng& rng) {
  return rng.chance(0.7) ? (0xffffff - rng.below(200)) & 0xffffff : rng.next_u32() & 0xffffff;
}

std::size_t random_length(queue::Rng& rng, std::size_t mtu, std::size_t packets_max) {
  const auto most = static_cast<std::uint32_t>(packets_max);
  switch (rng.below(8)) {
    case 0:
      return rng.below(5);
    case 1:
      return mtu - 1 + rng.below(3);
    case 2:
      return mtu * (1 + rng.below(most));
    case 3:
      return mtu * (1 + rng.below(most - 1)) - 1 + rng.below(3);
    case 4:
    case 5:
      return rng.below(static_cast<std::uint32_t>(mtu));
    default:
      return rng.below(static_cast<std::uint32_t>(mtu) * most + 1);
  }
}

TrafficConfig TrafficConfig::of(std::uint64_t seed) {
  queue::Rng rng(seed ^ 0x7261666669637400);
  TrafficConfig config;
  config.seed = seed;
  config.faults = rng.chance(0.15) ? wire::LinkConfig{} : random_faults(rng);
  if (rng.chance(0.3)) config.connections = 2 + rng.below(3);
  config.is_receive_shared = rng.chance(config.connections > 1 ? 0.5 : 0.1);
  config.side.send_depth = 4 + rng.below(config.connections > 1 ? 24 : 60);
  config.side.recv_depth = 2 + rng.below(config.connections > 1 ? 24 : 60);
  config.side.inline_max = any_of(rng, {0, 64, 220});
  config.side.signal_all = rng.chance(0.2);
  ConnectionConfig& connection = config.connection;
  connection.path_mtu = static_cast<std::uint16_t>(256 << rng.below(5));
  connection.timeout = static_cast<std::uint8_t>(8 + rng.below(8));  // 1 to 134 ms
  // A slow line with a full queue takes tens of milliseconds: a timeout below that would be the program's mistake.
  if (config.faults.bytes_per_second > 0) connection.timeout = std::max<std::uint8_t>(connection.timeout, 14);
  connection.min_rnr_timer = any_of(rng, {1, 5, 12, 14, 20});
  connection.max_rd_atomic = any_of(rng, {1, 2, 4, 16});
  connection.max_dest_rd_atomic = connection.max_rd_atomic;
  config.requests_each_way = 20 + rng.below(config.connections > 1 ? 30 : 80);
  config.late_receives = rng.chance(0.5) ? 0.8 : 0.0;
  config.drains = rng.chance(0.3) ? 0.1 : 0.0;
  config.has_windows = rng.chance(0.4);
  if (connection.path_mtu <= 1024 && rng.chance(0.25)) config.packets_max = 64;  // longer than the window
  if (rng.chance(0.7)) return config;
  config.ending = rng.chance(0.2) ? Ending::Killed : Ending::ByMistake;
  // The receives of a shared queue fit whatever comes.
  const int mistakes = kMistakes - 1 - (config.is_receive_shared ? 2 : 0);
  if (config.ending == Ending::ByMistake) {
    config.mistake = static_cast<Mistake>(1 + rng.below(static_cast<std::uint32_t>(mistakes)));
  }
  return config;
}

std::string to_string(const TrafficConfig& config) {
  const auto& faults = config.faults;
  const auto& connection = config.connection;
  char text[512];
  std::snprintf(
      text, sizeof text,
      "%zu connections%s%s, mtu %u, messages to %zu packets, timeout %u, rnr timer %u, rd_atomic %u, loss %.3f "
      "duplicate %.3f reorder %.3f corrupt %.3f queue %zu, send depth %u recv depth %u, ending %d mistake %d, "
      "late %.1f drains %.1f",
      config.connections, config.is_receive_shared ? " with SRQ" : "", config.has_windows ? " with windows" : "",
      connection.path_mtu, config.packets_max, connection.timeout, connection.min_rnr_timer, connection.max_rd_atomic,
      faults.loss, faults.duplicate, faults.reorder, faults.corrupt, faults.queue_bytes, config.side.send_depth,
      config.side.recv_depth, static_cast<int>(config.ending), static_cast<int>(config.mistake), config.late_receives,
      config.drains);
  return text;
}

}  // namespace nicless::sim
