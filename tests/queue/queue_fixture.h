// SPDX-License-Identifier: MIT
// A completion queue with its channel and its device's asynchronous events, and what tests look at of its contents.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <vector>

#include "queue/completion_queue.h"
#include "tests/queue/print.h"

namespace nicless::queue {

// The members of an ibv_wc that the queues fill, as a value.
struct Wc {
  std::uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  std::uint32_t qp_num = 0;
  friend bool operator==(const Wc&, const Wc&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const Wc& wc) {
  return out << "{wr_id " << wc.wr_id << ", status " << wc.status << ", opcode " << wc.opcode << ", qp " << wc.qp_num
             << "}";
}

struct CqFixture {
  explicit CqFixture(std::uint32_t capacity = 64, const CqOptions& options = {})
      : async_events(open_event_fd().value()),
        channel(open_event_fd().value()),
        cq(capacity, &channel, async_events, this, options) {}

  std::vector<Wc> poll_all() {
    std::vector<Wc> polled;
    std::array<ibv_wc, 4> wc;
    for (int count = 4; count == 4;) {
      count = cq.poll(wc);
      for (int i = 0; i < count; ++i) {
        const ibv_wc& w = wc[static_cast<std::size_t>(i)];
        polled.push_back({.wr_id = w.wr_id, .status = w.status, .opcode = w.opcode, .qp_num = w.qp_num});
      }
    }
    return polled;
  }

  AsyncEvents async_events;
  CompletionChannel channel;
  CompletionQueue cq;
};

}  // namespace nicless::queue
