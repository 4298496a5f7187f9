// SPDX-License-Identifier: MIT
// What a program has posted to one queue pair and seen complete. wr_ids count up; a completion must never go back.
#pragma once

#include <cstdint>

#include "tests/fuzz/input.h"
#include "tests/sim/side.h"

namespace nicless::fuzz {

struct Program {
  std::uint64_t sends = 0, send_seen = 0;
  std::uint64_t recvs = 0, recv_seen = 0;

  void check_completions(sim::Side& side) {
    for (const sim::Wc& wc : side.poll_send()) {
      require(wc.wr_id >= send_seen && wc.wr_id < sends, "a send completes twice, out of order, or unposted");
      send_seen = wc.wr_id + 1;
    }
    for (const sim::Wc& wc : side.poll_recv()) {
      require(wc.wr_id == recv_seen && wc.wr_id < recvs, "a receive completes twice, out of order, or unposted");
      recv_seen = wc.wr_id + 1;
    }
    side.qp().take_reasons();
  }
  // Reset: what has not completed never will.
  void forget(sim::Side& side) {
    check_completions(side);
    send_seen = sends;
    recv_seen = recvs;
  }
};

}  // namespace nicless::fuzz
