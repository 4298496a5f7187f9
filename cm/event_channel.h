// SPDX-License-Identifier: MIT
// Event channels and the events on them: rdma_create_event_channel(3), rdma_get_cm_event(3), rdma_ack_cm_event(3).
// An event belongs to the id it was reported for (a CONNECT_REQUEST: to the listener) from the moment it is queued
// until it is acknowledged; destroying the id waits for that. Thread-safe.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "queue/event_list.h"
#include "queue/result.h"

namespace nicless::cm {

struct CmId;
struct Membership;
using queue::Result;

// The program's pointer is ours: the public struct is the base.
struct CmEvent : rdma_cm_event {
  CmId* owner = nullptr;
  Membership* membership = nullptr;  // a multicast event's group
  std::uint8_t private_data[256]{};

  CmEvent(CmId& for_id, rdma_cm_event_type type, int status_value);
  // Zero-padded to what the message holds, which is the length the program sees.
  void set_private_data(std::span<const std::byte> data);
};

struct EventChannel : rdma_event_channel {
  explicit EventChannel(int event_fd);
  queue::EventList<CmEvent*> events;
  std::unordered_set<CmId*> ids;   // that report here; guarded by the agent's lock
  const std::uint64_t generation;  // of the process that made it
};

inline EventChannel& channel_of(rdma_event_channel* channel) {
  return *static_cast<EventChannel*>(channel);
}

Result<EventChannel*> create_event_channel();
// As when the kernel's descriptor is closed: what is still queued is forgotten, and the ids that report here are over:
// their connections end, their ports are free, and all that can be done with them is to destroy them. A channel from
// before a fork only closes its descriptor.
void destroy_event_channel(EventChannel& channel);

// Blocks unless the descriptor is O_NONBLOCK. Moves the id's queue pair through its states where the event says so.
Result<CmEvent*> fetch_event(EventChannel& channel);
void ack_cm_event(CmEvent& event);

// From now on the id reports there; null: nowhere. The agent's lock is held.
void report_to(CmId& id, rdma_event_channel* channel);
// Queues it for the id's channel; forgets it if that is gone. The agent's lock is held.
void report(CmEvent* event);
// What is queued for this id, off its channel: all of it, or of one group of its alone. Not acknowledged yet.
std::vector<CmEvent*> take_queued(CmId& id, const Membership* membership = nullptr);

// ENODEV: made before a fork, dead in this process.
Result<void> check_alive(std::uint64_t generation, const char* what);

}  // namespace nicless::cm
