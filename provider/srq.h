// SPDX-License-Identifier: MIT
// Shared receive queues behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "provider/event_gate.h"
#include "provider/pd_mr.h"
#include "queue/shared_receive_queue.h"

namespace nicless::provider {

struct Srq {
  Srq(Pd& the_pd, const ibv_srq_init_attr& attr);
  ibv_srq verbs{};
  const ContextHold context;
  const PdChild pd;
  queue::SharedReceiveQueue queue;
  EventGate async_events;
  std::atomic<std::uint32_t> users{0};  // queue pairs
};

inline Srq& srq_of(ibv_srq* srq) {
  return *reinterpret_cast<Srq*>(srq);
}

}  // namespace nicless::provider
