// SPDX-License-Identifier: MIT
#include "tests/sim/drain.h"

namespace nicless::sim {

using wire::QpState;

void Drain::step(World& world, queue::Rng& rng, Side& side, std::size_t host) {
  const QpState state = side.qp().state();
  if (!is_under_way_ && state == QpState::Rts) {
    static_cast<void>(side.to_state(world.now(), QpState::Sqd, wire::attr_mask::kEnSqdAsyncNotify));
    is_under_way_ = true;
    world.flush(host);
    return;
  }
  if (state != QpState::Sqd) return end();
  while (const auto event = side.async_events().take()) {
    if (event->type == queue::AsyncType::SqDrained) drained_psn_ = side.qp().attributes().sq_psn;
  }
  if (!drained_psn_) return;
  if (*drained_psn_ != side.qp().attributes().sq_psn) world.fail("a drained send queue sends");
  if (rng.chance(0.3)) return;
  end();
  static_cast<void>(side.to_state(world.now(), QpState::Rts));
  world.flush(host);
}

void Drain::end() {
  is_under_way_ = false;
  drained_psn_.reset();
}

}  // namespace nicless::sim
