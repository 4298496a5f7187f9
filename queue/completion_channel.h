// SPDX-License-Identifier: MIT
// A completion channel: the CQs that have news, behind a descriptor. See ibv_create_comp_channel(3),
// ibv_get_cq_event(3). Thread-safe.
#pragma once

#include "queue/event_list.h"

namespace nicless::queue {

// handle: the ibv_cq, as ibv_get_cq_event returns it.
struct CompletionEvent {
  void* handle = nullptr;
  friend bool operator==(const CompletionEvent&, const CompletionEvent&) = default;
};

using CompletionChannel = EventList<CompletionEvent>;

}  // namespace nicless::queue
