// SPDX-License-Identifier: MIT
// Everything about a run of random traffic that is decided before it starts, by one seed.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/request.h"
#include "tests/sim/side.h"
#include "wire/link.h"

namespace nicless::sim {

// How the first connection ends.
enum class Ending : std::uint8_t {
  Clean,
  ByMistake,  // one request has one
  Killed,     // a program moves its queue pair to ERR
};

struct TrafficConfig {
  std::uint64_t seed = 1;
  wire::LinkConfig faults;
  SideConfig side;
  ConnectionConfig connection;  // of all of them, but for the PSNs
  std::size_t connections = 1;
  bool is_receive_shared = false;  // one SRQ a host
  bool has_windows = false;        // the first end binds a memory window, the other writes through it
  std::size_t requests_each_way = 60;
  std::size_t packets_max = 6;  // path MTUs in the longest message
  double late_receives = 0;     // how often a program does something else than post the receive that is due
  double drains = 0;            // how often a program goes to SQD instead of posting
  Ending ending = Ending::Clean;
  Mistake mistake = Mistake::None;
  bool may_break = false;  // the network is so bad that retries may run out

  bool is_lossy() const { return faults.loss > 0 || faults.corrupt > 0 || faults.queue_bytes > 0; }
  static TrafficConfig of(std::uint64_t seed);
};
std::string to_string(const TrafficConfig& config);  // one line, for a failure

wire::LinkConfig random_faults(queue::Rng& rng);
// Most of them so near the wrap that every run crosses it.
std::uint32_t random_psn(queue::Rng& rng);
std::uint8_t any_of(queue::Rng& rng, std::initializer_list<int> values);
// Bytes of a message: of all kinds that matter, around multiples of the path MTU above all.
std::size_t random_length(queue::Rng& rng, std::size_t mtu, std::size_t packets_max);

}  // namespace nicless::sim
