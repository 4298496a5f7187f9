// SPDX-License-Identifier: MIT
// A send queue that is drained in the middle of traffic, and goes on: RTS -> SQD -> SQ_DRAINED -> RTS. Between the
// event and the way back no request may go out. See ibv_modify_qp(3); IBTA 10.3.1.6.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "queue/rng.h"
#include "tests/sim/side.h"
#include "tests/sim/world.h"

namespace nicless::sim {

class Drain {
 public:
  // The next step, at whatever state the queue pair is. host: of the side, in the world.
  void step(World& world, queue::Rng& rng, Side& side, std::size_t host);
  bool is_under_way() const { return is_under_way_; }

 private:
  void end();

  bool is_under_way_ = false;
  std::optional<std::uint32_t> drained_psn_;  // SQ_DRAINED has come
};

}  // namespace nicless::sim
