// SPDX-License-Identifier: MIT
#include "cm/multicast.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "cm/address.h"
#include "cm/agent.h"
#include "cm/conn_param.h"
#include "cm/datagram.h"
#include "provider/private.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

constexpr std::uint32_t kAllMembers = 0xffffff;  // the queue pair number of a group

bool is_ipv4_group(const wire::Gid& gid) {
  return gid.is_ipv4() && std::to_integer<int>(gid.bytes[12] & std::byte{0xf0}) == 0xe0;
}

Result<void> check_group(const CmId& id, const wire::Gid& group) {
  if (!is_datagram(id)) return queue::error(EINVAL, "only datagram ids (RDMA_PS_UDP, RDMA_PS_IPOIB) join groups");
  if (id.device == nullptr)
    return queue::error(EINVAL, "the id is not bound to a device; rdma_bind_addr or rdma_resolve_addr come first");
  if (!is_ipv4_group(group) && group.bytes[0] != std::byte{0xff})
    return queue::error(EINVAL, wire::to_string(group) + " is no multicast group");
  if (is_ipv4_group(group) && !id.local.is_ipv4())
    return queue::error(
        EINVAL, wire::to_string(group) + " is a group of IPv4, and the id is bound to " + wire::to_string(id.local));
  return {};
}

auto find_membership(CmId& id, const sockaddr& address) {
  const std::size_t bytes = address_bytes(address.sa_family);
  return std::find_if(id.memberships.begin(), id.memberships.end(),
                      [&](const auto& membership) { return std::memcmp(&membership->address, &address, bytes) == 0; });
}

CmEvent* joined(CmId& id, Membership& membership) {
  auto* event = new CmEvent(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
  event->membership = &membership;
  event->param.ud = {};
  event->param.ud.private_data = membership.context;
  event->param.ud.ah_attr = address_handle_of(id, membership.group);
  event->param.ud.qp_num = kAllMembers;
  event->param.ud.qkey = RDMA_UDP_QKEY;
  return event;
}

Result<void> attach(ibv_qp* qp, const wire::Gid& group) {
  ibv_gid gid{};
  wire::to_raw(group, gid.raw);
  if (int e = ibv_attach_mcast(qp, &gid, 0))
    return queue::error(e, "the queue pair cannot enter " + wire::to_string(group));
  return {};
}

void detach(ibv_qp* qp, const wire::Gid& group) {
  ibv_gid gid{};
  wire::to_raw(group, gid.raw);
  ibv_detach_mcast(qp, &gid, 0);
}

}  // namespace

Result<void> join_multicast(CmId& id, const sockaddr* address, bool is_send_only, void* context) {
  const std::size_t bytes = address_bytes(address);
  if (bytes == 0) return queue::error(EINVAL, "the address is none of AF_INET, AF_INET6 and AF_IB");
  const wire::Gid group = to_gid(*address);
  if (auto ok = check_group(id, group); !ok) return ok;
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    auto membership = std::make_unique<Membership>();
    std::memcpy(&membership->address, address, bytes);
    membership->group = group;
    membership->is_send_only = is_send_only;
    membership->context = context;
    report(joined(id, *membership));
    id.memberships.push_back(std::move(membership));
  }
  return complete(id);
}

Result<void> join_multicast(CmId& id, const rdma_cm_join_mc_attr_ex& attr, void* context) {
  constexpr std::uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (attr.comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
    return queue::error(ENOTSUP, "comp_mask asks for something that this library does not know");
  if ((attr.comp_mask & kNeeded) != kNeeded)
    return queue::error(EINVAL, "comp_mask has to name both the address and the join flags");
  if (attr.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) return queue::error(EINVAL, "no such join flag");
  return join_multicast(id, attr.addr, attr.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

Result<void> leave_multicast(CmId& id, const sockaddr* address) {
  if (address_bytes(address) == 0) return queue::error(EINVAL, "the address is none of AF_INET, AF_INET6 and AF_IB");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  std::unique_ptr<Membership> left;
  {
    Turn turn(**agent);
    const auto place = find_membership(id, *address);
    if (place == id.memberships.end()) return queue::error(EADDRNOTAVAIL, "the id is not in that group");
    left = std::move(*place);
    id.memberships.erase(place);
  }
  if (id.qp != nullptr && !left->is_send_only) detach(id.qp, left->group);
  if (id.event != nullptr && static_cast<CmEvent*>(id.event)->membership == left.get()) release_shown_event(id);
  const auto queued = take_queued(id, left.get());
  for (CmEvent* event : queued) ack_cm_event(*event);
  Turn turn(**agent);
  id.acknowledged.wait((*agent)->mutex, [&] { return left->events_outstanding == 0; });
  return {};
}

void fetch_membership(CmEvent& event) {
  const CmId& id = *event.owner;
  if (id.qp == nullptr || event.membership->is_send_only) return;
  const auto attached = attach(id.qp, event.membership->group);
  if (attached) return;
  nicless_log(NICLESS_LOG_WARN, ("rdma_join_multicast: MULTICAST_ERROR, " + attached.error().why).c_str());
  event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
  event.status = -attached.error().errno_value;
}

}  // namespace nicless::cm
