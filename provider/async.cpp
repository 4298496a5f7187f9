// SPDX-License-Identifier: MIT
#include <cerrno>

#include "provider/context.h"
#include "provider/cq.h"
#include "provider/objects.h"
#include "provider/qp.h"
#include "provider/srq.h"

namespace nicless::provider {
namespace {

// Writes what the event names into `event`; the gate of that object. A port has none: it outlives its events.
EventGate* fill(const queue::AsyncEvent& from, ibv_async_event* event) {
  event->event_type = static_cast<ibv_event_type>(from.type);
  switch (from.type) {
    case queue::AsyncType::CqErr:
      event->element.cq = static_cast<ibv_cq*>(from.handle);
      return &cq_of(event->element.cq).async_events;
    case queue::AsyncType::SrqErr:
    case queue::AsyncType::SrqLimitReached:
      event->element.srq = static_cast<ibv_srq*>(from.handle);
      return &srq_of(event->element.srq).async_events;
    case queue::AsyncType::PortActive:
    case queue::AsyncType::PortErr:
      event->element.port_num = 1;
      return nullptr;
    case queue::AsyncType::QpFatal:
    case queue::AsyncType::QpReqErr:
    case queue::AsyncType::QpAccessErr:
    case queue::AsyncType::CommEst:
    case queue::AsyncType::SqDrained:
    case queue::AsyncType::QpLastWqeReached:
      break;
  }
  event->element.qp = static_cast<ibv_qp*>(from.handle);
  return &qp_of(event->element.qp).async_events;
}

// A queue pair that refused its peer may have no completion to tell of it: an XRC target never has.
void explain(Context& context, const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return context.runtime.log_reasons(queue::Qpn(event.element.qp->qp_num));
    default:
      return;
  }
}

// Of an XRC target whose other handles keep it.
bool is_of_closed_handle(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
      return false;
    default:
      return qp_of(event.element.qp).is_handle_closed;
  }
}

}  // namespace

Result<void> wait_async_event(ibv_context* verbs, ibv_async_event* event) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive;
  return context.async_events.while_waiting([&]() -> Result<void> {
    for (;;) {
      bool is_for_nobody = false;
      const auto taken = context.async_events.take([&](const queue::AsyncEvent& e) {
        EventGate* const gate = fill(e, event);
        is_for_nobody = is_of_closed_handle(*event);
        if (gate != nullptr && !is_for_nobody) gate->on_delivered();
      });
      if (taken && is_for_nobody) continue;
      if (taken) {
        explain(context, *event);
        return {};
      }
      if (const int e = context.async_events.await()) {
        return queue::error(e, e == EAGAIN ? "no event is waiting" : "interrupted by a signal");
      }
    }
  });
}

void ack_async_event(ibv_async_event* event) {
  void* handle = event->element.qp;  // a union of pointers
  ibv_async_event ignored;
  EventGate* const gate = fill({static_cast<queue::AsyncType>(event->event_type), handle}, &ignored);
  if (gate != nullptr) gate->acknowledge(1);
}

}  // namespace nicless::provider
