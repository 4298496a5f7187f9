// SPDX-License-Identifier: MIT
#include "cm/event_channel.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "cm/agent.h"
#include "cm/cm_id.h"
#include "cm/connect.h"
#include "cm/multicast.h"
#include "cm/qp.h"
#include "provider/private.h"

namespace nicless::cm {
namespace {

void count_done(CmEvent& event) {
  CmId& owner = *event.owner;
  if (owner.generation != nicless_process_generation()) return;
  const auto agent = Agent::instance();
  if (!agent) return;
  Turn turn(**agent);
  --owner.events_outstanding;
  if (event.membership != nullptr) --event.membership->events_outstanding;
  owner.acknowledged.notify_all();
}

// The id's own word on a failed connection was CONNECT_ERROR; what the peer says to it is no news.
bool is_stale(const CmEvent& event) {
  return event.owner->had_connect_error &&
         (event.event == RDMA_CM_EVENT_REJECTED || event.event == RDMA_CM_EVENT_DISCONNECTED);
}

void fetched_response(CmEvent& event) {
  if (event.id->qp == nullptr) return;  // the program establishes: rdma_establish(3)
  const Result<void> established = establish(id_of(event.id));
  if (established) {
    event.event = RDMA_CM_EVENT_ESTABLISHED;
    return;
  }
  event.event = RDMA_CM_EVENT_CONNECT_ERROR;
  event.status = -established.error().errno_value;
  event.owner->had_connect_error = true;
}

// What the program's thread does for an event before it sees it. False: it never sees it.
bool prepare(CmEvent& event) {
  if (is_stale(event)) return false;
  switch (event.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return fetch_request(event);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      fetched_response(event);
      return true;
    case RDMA_CM_EVENT_REJECTED:
      move_to_error(id_of(event.id));
      return true;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      fetch_membership(event);
      return true;
    default:
      return true;
  }
}

void release_ids(Agent& agent, EventChannel& channel) {
  Turn turn(agent);
  while (!channel.ids.empty()) {
    CmId& id = **channel.ids.begin();
    report_to(id, nullptr);
    release(agent, id);
  }
}

// Requests that nobody will fetch any more: their ids go. After all else, which may be events of theirs.
void discard_events(EventChannel& channel) {
  std::vector<rdma_cm_id*> requested;
  while (const auto event = channel.events.take()) {
    if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST) requested.push_back((*event)->id);
    ack_cm_event(**event);
  }
  for (rdma_cm_id* id : requested) static_cast<void>(destroy_id(id_of(id)));
}

}  // namespace

CmEvent::CmEvent(CmId& for_id, rdma_cm_event_type type, int status_value) : rdma_cm_event{}, owner(&for_id) {
  id = &for_id;
  event = type;
  status = status_value;
}

void CmEvent::set_private_data(std::span<const std::byte> data) {
  const std::size_t bytes = std::min(data.size(), sizeof private_data);
  std::transform(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes), private_data,
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  param.conn.private_data = private_data;
  param.conn.private_data_len = static_cast<std::uint8_t>(bytes);
}

EventChannel::EventChannel(int event_fd)
    : rdma_event_channel{event_fd}, events(event_fd), generation(nicless_process_generation()) {}

Result<EventChannel*> create_event_channel() {
  const auto fd = queue::open_event_fd();
  if (!fd) return fd.error();
  return new EventChannel(*fd);
}

void destroy_event_channel(EventChannel& channel) {
  if (channel.generation != nicless_process_generation()) {
    queue::close_event_fd(channel.fd);  // its list's lock may be held by a thread of the parent
    return;
  }
  if (Agent* agent = Agent::running()) {
    release_ids(*agent, channel);
    discard_events(channel);
  }
  queue::retire(channel);
}

Result<CmEvent*> fetch_event(EventChannel& channel) {
  if (auto alive = check_alive(channel.generation, "event channel"); !alive) return alive.error();
  for (;;) {
    const auto taken = channel.events.wait();
    if (!taken) return taken.error();
    CmEvent* event = *taken;
    if (prepare(*event)) return event;
    ack_cm_event(*event);
  }
}

void ack_cm_event(CmEvent& event) {
  count_done(event);
  delete &event;
}

void report_to(CmId& id, rdma_event_channel* channel) {
  if (id.channel != nullptr) channel_of(id.channel).ids.erase(&id);
  if (channel != nullptr) channel_of(channel).ids.insert(&id);
  id.channel = channel;
}

void report(CmEvent* event) {
  if (event->owner->channel == nullptr) return delete event;
  ++event->owner->events_outstanding;
  if (event->membership != nullptr) ++event->membership->events_outstanding;
  channel_of(event->owner->channel).events.push(event);
}

std::vector<CmEvent*> take_queued(CmId& id, const Membership* membership) {
  std::vector<CmEvent*> taken;
  if (id.channel == nullptr) return taken;
  channel_of(id.channel).events.erase_if([&](CmEvent* const& event) {
    if (event->owner != &id || (membership != nullptr && event->membership != membership)) return false;
    taken.push_back(event);
    return true;
  });
  return taken;
}

Result<void> check_alive(std::uint64_t generation, const char* what) {
  if (generation == nicless_process_generation()) return {};
  return queue::error(ENODEV, std::string("this ") + what +
                                  " was made before a fork and belongs to the parent; the child has to make its own");
}

}  // namespace nicless::cm
