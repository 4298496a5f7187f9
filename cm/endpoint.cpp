// SPDX-License-Identifier: MIT
#include "cm/endpoint.h"

#include <cerrno>
#include <cstring>

#include "cm/qp.h"
#include "cm/resolve.h"

namespace nicless::cm {
namespace {

Result<void> make_passive(CmId& id, const rdma_addrinfo& info, ibv_pd* pd, const ibv_qp_init_attr* qp_init_attr) {
  if (auto bound = bind_addr(id, info.ai_src_addr); !bound) return bound;
  if (pd != nullptr) id.pd = pd;
  if (qp_init_attr == nullptr) return {};
  id.request_qp_attr = std::make_unique<ibv_qp_init_attr>(*qp_init_attr);
  id.request_qp_attr->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  return {};
}

constexpr int kResolveTimeoutMs = 2000;  // as in rdma-core

// A path that came with the address is used, else the way there is looked up.
Result<void> find_route(CmId& id, const rdma_addrinfo& info) {
  if (info.ai_route_len == 0) return resolve_route(id);
  const auto set =
      set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, info.ai_route, static_cast<std::size_t>(info.ai_route_len));
  return set ? complete(id) : set;
}

Result<void> make_active(CmId& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  if (auto resolved = resolve_addr(id, info.ai_src_addr, info.ai_dst_addr, kResolveTimeoutMs); !resolved)
    return resolved;
  if (auto resolved = find_route(id, info); !resolved) return resolved;
  if (info.ai_connect_len > 0) {
    const auto* data = static_cast<const std::byte*>(info.ai_connect);
    id.connect_data.assign(data, data + info.ai_connect_len);
  }
  if (qp_init_attr == nullptr) return {};
  qp_init_attr->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  return create_qp(id, pd, *qp_init_attr);
}

}  // namespace

Result<CmId*> create_ep(rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  const auto made = create_id(nullptr, nullptr, static_cast<rdma_port_space>(info.ai_port_space),
                              static_cast<ibv_qp_type>(info.ai_qp_type));
  if (!made) return made.error();
  CmId& id = **made;
  const bool is_passive = (info.ai_flags & RAI_PASSIVE) != 0;
  const Result<void> done =
      is_passive ? make_passive(id, info, pd, qp_init_attr) : make_active(id, info, pd, qp_init_attr);
  if (done) return &id;
  destroy_ep(id);
  return done.error();
}

void destroy_ep(CmId& id) {
  if (id.qp != nullptr) destroy_qp(id);
  if (id.srq != nullptr) destroy_srq(id);
  static_cast<void>(destroy_id(id));
}

Result<CmId*> next_request(CmId& listener) {
  if (!listener.is_sync)
    return queue::error(EINVAL, "the listener reports on an event channel; rdma_get_cm_event has its requests");
  release_shown_event(listener);
  const auto fetched = fetch_event(channel_of(listener.channel));
  if (!fetched) return fetched.error();
  CmEvent* event = *fetched;
  Result<void> done{};
  if (event->status != 0 || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    done = queue::error(event->status < 0 ? -event->status : EINVAL, "something else happened to the listener");
  } else if (listener.request_qp_attr != nullptr) {
    ibv_qp_init_attr attr = *listener.request_qp_attr;
    done = create_qp(id_of(event->id), listener.pd, attr);
  }
  if (!done) {
    listener.event = event;
    return done.error();
  }
  event->id->event = event;
  return &id_of(event->id);
}

}  // namespace nicless::cm
