// SPDX-License-Identifier: MIT
// Queue pairs behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "provider/cq.h"
#include "provider/event_gate.h"
#include "provider/pd_mr.h"
#include "provider/runtime.h"
#include "provider/srq.h"
#include "provider/use_of.h"
#include "provider/xrcd.h"
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

struct Qp;

// What an ibv_qp points at: the queue pair, or one more handle of it (ibv_open_qp).
struct QpHandle {
  explicit QpHandle(Qp& queue_pair) : real(queue_pair) {}
  ibv_qp_ex verbs{};  // its qp_base stands first
  // Release 65 has one slot more.
  void (*wr_flush)(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type, uint8_t level) = {};
  Qp& real;
};

// What a queue pair is made of. An XRC target has an XRC domain and neither a protection domain nor CQs.
struct QpRequest {
  Context& context;
  Pd* pd = nullptr;
  Xrcd* xrcd = nullptr;
  ibv_qp_init_attr attr{};
};

struct Qp : QpHandle {
  Qp(const QpRequest& request, Seat the_seat);
  ~Qp();
  bool has_receives() const { return srq || receive_queue != nullptr; }

  const ContextHold context;
  const PdChild pd;
  const UseOf<Cq> send_cq;
  const UseOf<Cq> recv_cq;                    // none of an XRC initiator
  const UseOf<Srq> srq;                       // or none
  std::optional<UseOf<Xrcd>> xrcd;            // of an XRC target, until the handle that made it is destroyed
  const std::shared_ptr<XrcGroup> xrc_group;  // of an XRC target
  std::uint32_t handles = 1;                  // of an XRC target: guarded by xrc_group
  std::atomic<bool> is_handle_closed{false};  // only handles of ibv_open_qp are left: events have nobody to go to
  const Seat seat;
  const ibv_qp_init_attr init;  // as created, capacities as granted
  EventGate async_events;

  // The rest belongs to the holder of the port's lock; the receive queue has a lock of its own.
  const std::unique_ptr<queue::SendQueue> send_queue;           // none of an XRC target
  const std::unique_ptr<queue::ReceiveQueue> receive_queue;     // none with an SRQ, and none of XRC
  const std::unique_ptr<queue::ReceiveSource> denied_receives;  // before either of them, with --rnr
  const std::unique_ptr<wire::ProgramQueuePair> transport;
  std::vector<MulticastAttachment> attachments;
  bool hears_itself = true;  // IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is not set
  ibv_qp_attr attr{};        // as last set, for what the transport does not keep

  std::unique_ptr<WrBuilder> builder;  // behind the ibv_wr_* functions, where the program asked for them
};

// A further handle of an XRC target.
struct OpenedQp : QpHandle {
  OpenedQp(Xrcd& the_xrcd, Qp& target, void* qp_context);
  const ContextHold context;
  const UseOf<Xrcd> xrcd;
};

inline QpHandle& qp_handle_of(ibv_qp* qp) {
  return *reinterpret_cast<QpHandle*>(qp);
}
inline Qp& qp_of(ibv_qp* qp) {
  return qp_handle_of(qp).real;
}

}  // namespace nicless::provider
