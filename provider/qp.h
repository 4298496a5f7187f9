// SPDX-License-Identifier: MIT
// Queue pairs behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "provider/cq.h"
#include "provider/event_gate.h"
#include "provider/pd_mr.h"
#include "provider/runtime.h"
#include "provider/srq.h"
#include "provider/use_of.h"
#include "queue/receive_queue.h"
#include "queue/send_queue.h"
#include "wire/qp/program_queue_pair.h"

namespace nicless::provider {

class WrBuilder;

// A multicast GID that a queue pair is attached to, and the IP groups it is in for that (multicast.cpp).
struct MulticastAttachment {
  wire::Gid gid;
  std::vector<wire::Gid> groups;
};

struct Qp {
  Qp(Pd& the_pd, const ibv_qp_init_attr& attr, Seat the_seat);
  ~Qp();

  ibv_qp_ex verbs{};  // its qp_base stands first
  // Release 65 has one slot more.
  void (*wr_flush)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type, uint8_t level) = {};
  const ContextHold context;
  const PdChild pd;
  const UseOf<Cq> send_cq;
  const UseOf<Cq> recv_cq;
  const UseOf<Srq> srq;  // or none
  const Seat seat;
  const ibv_qp_init_attr init;  // as created, capacities as granted
  EventGate async_events;

  // The rest belongs to the holder of the port's lock; the receive queue has a lock of its own.
  queue::SendQueue send_queue;
  const std::unique_ptr<queue::ReceiveQueue> receive_queue;     // none with an SRQ
  const std::unique_ptr<queue::ReceiveSource> denied_receives;  // before either of them, with --rnr
  const std::unique_ptr<wire::ProgramQueuePair> transport;
  std::vector<MulticastAttachment> attachments;
  bool hears_itself = true;  // IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is not set
  ibv_qp_attr attr{};        // as last set, for what the transport does not keep

  std::unique_ptr<WrBuilder> builder;  // behind the ibv_wr_* functions, where the program asked for them
};

inline Qp& qp_of(ibv_qp* qp) {
  return *reinterpret_cast<Qp*>(qp);
}

}  // namespace nicless::provider
