// SPDX-License-Identifier: MIT
// Decides, before a run starts, every request that one end of a connection will make, with the bytes it must move and
// what atomics must bring back: they are carried out in order and once, so all of that is known. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tests/sim/traffic_config.h"

namespace nicless::sim {

inline constexpr std::size_t kSharedBytes = 128 * 1024;  // of the buffers a peer reads or writes
inline constexpr std::size_t kSlackBytes = 2048;         // of a slot, for gaps and receives longer than the message

class Planner {
 public:
  // own: has its content; peer: likewise.
  Planner(const TrafficConfig& config, queue::Rng& rng, Arena& own, Arena& peer);
  // mistake: which one request makes, two thirds of the way. is_binder: which part it has in the use of a window.
  std::vector<Request> plan(Mistake mistake, bool is_binder);

 private:
  Request next();
  void draw_flags(Request& request);
  std::optional<Request> window_request(std::size_t index, bool is_binder);
  void plan_read(Request& request, std::size_t length);
  void plan_atomic(Request& request);
  void plan_message(Request& request, std::size_t length);
  bool plan_forward(Request& request);
  std::size_t next_slot();
  void spoil(Request& request, Mistake mistake);

  const TrafficConfig& config_;
  queue::Rng& rng_;
  Arena& own_;
  Arena& peer_;
  const std::size_t slot_bytes_;
  std::vector<std::uint64_t> counters_;  // the peer's, after all that is planned
  std::optional<Request> brought_;       // the last request that brings data known beforehand
  std::size_t slots_used_ = 0;
  std::size_t since_signaled_ = 0;
};

}  // namespace nicless::sim
