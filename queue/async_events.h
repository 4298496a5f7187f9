// SPDX-License-Identifier: MIT
// The asynchronous events of one open device: see ibv_get_async_event(3). Types have the numbers of ibv_event_type.
// Thread-safe. An event names an object by its handle; the object counts how many of its events were acknowledged.
#pragma once

#include <cstdint>

#include "queue/event_list.h"

namespace nicless::queue {

enum class AsyncType : std::uint8_t {
  CqErr = 0,
  QpFatal = 1,
  QpReqErr = 2,
  QpAccessErr = 3,
  CommEst = 4,
  SqDrained = 5,
  PortActive = 9,
  PortErr = 10,
  SrqErr = 14,
  SrqLimitReached = 15,
  QpLastWqeReached = 16,
};

struct AsyncEvent {
  AsyncType type;
  void* handle = nullptr;  // the ibv_cq, ibv_qp or ibv_srq; a port has none
  friend bool operator==(const AsyncEvent&, const AsyncEvent&) = default;
};

using AsyncEvents = EventList<AsyncEvent>;

}  // namespace nicless::queue
