// SPDX-License-Identifier: MIT
#include "cm/cm_id.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cm/addrinfo.h"
#include "cm/agent.h"
#include "cm/datagram.h"
#include "cm/event_names.h"
#include "cm/multicast.h"
#include "cm/resolve.h"
#include "provider/private.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

Result<void> set_tos(CmId& id, std::uint8_t tos) {
  id.tos = tos;
  return {};
}

Result<void> set_ack_timeout(CmId& id, std::uint8_t code) {
  if (code > 31) return queue::error(EINVAL, "an ACK timeout is a code from 0 to 31");
  if (id.qp_type != IBV_QPT_RC && id.qp_type != IBV_QPT_XRC_SEND)
    return queue::error(EINVAL, "only reliable connections have an ACK timeout");
  id.ack_timeout = code;
  return {};
}

// Once it is bound, an id may still become one that shares, until it listens.
Result<void> set_sharing(Agent& agent, CmId& id, int may_share) REQUIRES(agent.mutex) {
  const bool is_bound = id.binding.has_value();
  if (id.stage == CmId::Stage::Listening || (is_bound && may_share == 0))
    return queue::error(EINVAL, why_busy(id.stage));
  id.may_share_address = may_share != 0;
  if (is_bound) agent.ports.share(*id.binding, id);
  return {};
}

Result<void> set_v6_only(Agent& agent, CmId& id, int is_v6_only) REQUIRES(agent.mutex) {
  if (id.stage != CmId::Stage::Idle && id.stage != CmId::Stage::Bound) return queue::error(EINVAL, why_busy(id.stage));
  if (id.binding)
    if (auto narrowed = agent.ports.set_v6_only(*id.binding, id, is_v6_only != 0); !narrowed) return narrowed;
  id.is_v6_only = is_v6_only != 0;
  return {};
}

struct OptionValue {
  const void* value;
  std::size_t bytes;
};

// set(value): with what the option holds, if it has the size it should have.
template <typename T, typename Set>
Result<void> with_value(const OptionValue& option, Set&& set) {
  if (option.value == nullptr || option.bytes != sizeof(T))
    return queue::error(EINVAL, "the option takes " + std::to_string(sizeof(T)) + " bytes");
  T value;
  std::memcpy(&value, option.value, sizeof value);
  return set(value);
}

Result<void> set_id_option(Agent& agent, CmId& id, int name, const OptionValue& option) REQUIRES(agent.mutex) {
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return with_value<std::uint8_t>(option, [&](auto value) { return set_tos(id, value); });
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return with_value<std::uint8_t>(option, [&](auto value) { return set_ack_timeout(id, value); });
    case RDMA_OPTION_ID_REUSEADDR:
      return with_value<int>(option,
                             [&](auto value) NO_THREAD_SAFETY_ANALYSIS { return set_sharing(agent, id, value); });
    case RDMA_OPTION_ID_AFONLY:
      return with_value<int>(option,
                             [&](auto value) NO_THREAD_SAFETY_ANALYSIS { return set_v6_only(agent, id, value); });
    default:
      return queue::error(ENOSYS, "no such option of an id");
  }
}

// Requests that nobody will fetch any more: their ids go, and the peers are told.
void discard(const std::vector<CmEvent*>& events) {
  for (CmEvent* event : events) {
    rdma_cm_id* requested = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : nullptr;
    ack_cm_event(*event);
    if (requested != nullptr) static_cast<void>(destroy_id(id_of(requested)));
  }
}

// With what is queued, and the ids of requests among it. How many events those are.
unsigned move(CmId& id, rdma_event_channel* channel) {
  const auto queued = take_queued(id);
  report_to(id, channel);
  for (CmEvent* event : queued) {
    channel_of(channel).events.push(event);
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) move(id_of(event->id), channel);
  }
  return static_cast<unsigned>(queued.size());
}

}  // namespace

CmId::CmId(void* user_context, rdma_port_space space, ibv_qp_type type)
    : rdma_cm_id{}, generation(nicless_process_generation()) {
  context = user_context;
  ps = space;
  qp_type = type;
}

CmId::~CmId() {
  free_addrinfo(resolved_addrinfo);
}

Result<CmId*> create_id(rdma_event_channel* channel, void* context, rdma_port_space ps, ibv_qp_type qp_type) {
  if (ps != RDMA_PS_TCP && ps != RDMA_PS_UDP && ps != RDMA_PS_IB && ps != RDMA_PS_IPOIB)
    return queue::error(EINVAL, "no such port space");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  EventChannel* reports_to = channel == nullptr ? nullptr : &channel_of(channel);
  if (reports_to != nullptr) {
    if (auto alive = check_alive(reports_to->generation, "event channel"); !alive) return alive.error();
  } else {
    auto own = create_event_channel();
    if (!own) return own.error();
    reports_to = *own;
  }
  auto* id = new CmId(context, ps, qp_type);
  id->is_sync = channel == nullptr;
  Turn turn(**agent);
  report_to(*id, reports_to);
  id->starting_psn = wire::Psn((*agent)->rng.next_u32());
  return id;
}

void release(Agent& agent, CmId& id) NO_THREAD_SAFETY_ANALYSIS {
  if (id.connection != nullptr) agent.orphan(*id.connection, now());
  id.connection = nullptr;
  release_datagram(agent, id);
  agent.hosts.forget(&id);
  id.stage = CmId::Stage::Idle;  // listens no more
  if (id.binding) agent.ports.release(*id.binding, id);
  id.binding.reset();
}

Result<void> destroy_id(CmId& id) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  std::vector<CmEvent*> queued;
  {
    Turn turn(**agent);
    release(**agent, id);
    if (id.events_outstanding > 0) queued = take_queued(id);
  }
  discard(queued);
  release_shown_event(id);
  rdma_event_channel* const channel = id.channel;
  {
    Turn turn(**agent);
    id.acknowledged.wait((*agent)->mutex, [&] { return id.events_outstanding == 0; });
    report_to(id, nullptr);
  }
  if (id.is_sync && channel != nullptr) destroy_event_channel(channel_of(channel));
  delete &id;
  return {};
}

Result<void> migrate_id(CmId& id, rdma_event_channel* channel) {
  const bool to_sync = channel == nullptr;
  if (to_sync && id.is_sync) return queue::error(EINVAL, "the id is synchronous already");
  if (to_sync) {
    auto own = create_event_channel();
    if (!own) return own.error();
    channel = *own;
  }
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  rdma_event_channel* old = id.channel;
  release_shown_event(id);
  bool was_sync = false;
  {
    Turn turn(**agent);
    const unsigned moved = move(id, channel);
    was_sync = std::exchange(id.is_sync, to_sync);
    id.acknowledged.wait((*agent)->mutex, [&] { return id.events_outstanding <= moved; });
  }
  if (was_sync) destroy_event_channel(channel_of(old));
  return {};
}

Result<void> set_option(CmId& id, int level, int name, const void* value, std::size_t bytes) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (level == RDMA_OPTION_ID) return set_id_option(**agent, id, name, {value, bytes});
  if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH)
    return set_path(id, {static_cast<const std::byte*>(value), value == nullptr ? 0 : bytes});
  return queue::error(ENOSYS, "no such option level");
}

const char* why_busy(CmId::Stage stage) {
  using Stage = CmId::Stage;
  switch (stage) {
    case Stage::Idle:
      return "the id is not bound";
    case Stage::Bound:
      return "the id is bound already";
    case Stage::Resolving:
      return "rdma_resolve_addr is under way: ADDR_RESOLVED or ADDR_ERROR has to come first";
    case Stage::Listening:
      return "the id listens already";
    case Stage::Requested:
      return "the id came with a CONNECT_REQUEST, and has its peer";
    case Stage::Connecting:
      return "the id has or had a connection, and one is all it can have";
    default:
      return "the id has the address of its peer already";
  }
}

Result<void> complete(CmId& id) {
  if (!id.is_sync) return {};
  release_shown_event(id);
  const auto event = fetch_event(channel_of(id.channel));
  if (!event) return event.error();
  id.event = *event;
  const int status = (*event)->status;
  if (status == 0) return {};
  if ((*event)->event == RDMA_CM_EVENT_ADDR_ERROR) return queue::error(-status, id.failure);
  if ((*event)->event == RDMA_CM_EVENT_REJECTED)
    return queue::error(ECONNREFUSED, "REJECTED, " + reject_reason(status));
  if ((*event)->event == RDMA_CM_EVENT_UNREACHABLE)
    return status > 0 ? queue::error(ECONNREFUSED, sidr_status(status))
                      : queue::error(-status, unreachable_why(status));
  return queue::error(status < 0 ? -status : status, std::string("ended in ") + rdma_event_str((*event)->event));
}

void release_shown_event(CmId& id) {
  if (id.event == nullptr) return;
  ack_cm_event(*static_cast<CmEvent*>(std::exchange(id.event, nullptr)));
}

Result<void> bind_device(Agent& agent, CmId& id, const wire::Gid& local) NO_THREAD_SAFETY_ANALYSIS {
  const auto place = agent.devices.find(local);
  if (!place) return place.error();
  id.place = *place;
  id.device = place->device;
  id.local = local;
  id.verbs = id.device->verbs;
  id.port_num = place->port;
  if (id.pd == nullptr) id.pd = id.device->pd;
  wire::to_raw(local, id.route.addr.addr.ibaddr.sgid.raw);
  id.route.addr.addr.ibaddr.pkey = htons(0xffff);
  return {};
}

}  // namespace nicless::cm
