// SPDX-License-Identifier: MIT
// Shared receive queues behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "provider/event_gate.h"
#include "provider/pd_mr.h"
#include "provider/use_of.h"
#include "provider/xrcd.h"
#include "queue/shared_receive_queue.h"

namespace nicless::provider {

struct Cq;

struct Srq {
  // of_xrcd and of_cq: both for an XRC SRQ, else neither.
  Srq(Pd& the_pd, const ibv_srq_init_attr& attr, Xrcd* of_xrcd = nullptr, Cq* of_cq = nullptr);
  ~Srq();
  ibv_srq verbs{};
  const ContextHold context;
  const PdChild pd;
  const UseOf<Xrcd> xrcd;
  const UseOf<Cq> cq;
  queue::Srqn srqn;
  queue::SharedReceiveQueue queue;
  const std::unique_ptr<queue::ReceiveSource> denied_receives;  // before it, with --rnr; XRC
  EventGate async_events;
  std::atomic<std::uint32_t> users{0};  // queue pairs; XRC targets are none
};

inline Srq& srq_of(ibv_srq* srq) {
  return *reinterpret_cast<Srq*>(srq);
}

}  // namespace nicless::provider
