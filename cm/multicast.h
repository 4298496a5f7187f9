// SPDX-License-Identifier: MIT
// Multicast groups of an id: rdma_join_multicast(3), rdma_leave_multicast(3). What the id's queue pair hears is
// ibv_attach_mcast's affair, done where librdmacm does it: when the program fetches the event.
#pragma once

#include <rdma/rdma_cma.h>

#include "cm/cm_id.h"
#include "cm/event_channel.h"

namespace nicless::cm {

// One of an id's groups, from the join to the leave.
struct Membership {
  sockaddr_storage address{};  // as the program wrote it: that is how it leaves
  wire::Gid group;
  bool is_send_only = false;
  void* context = nullptr;
  unsigned events_outstanding = 0;
};

// EINVAL: an id that is no datagram id or has no device, an address that is no group or one of another IP version.
Result<void> join_multicast(CmId& id, const sockaddr* address, bool is_send_only, void* context);
Result<void> join_multicast(CmId& id, const rdma_cm_join_mc_attr_ex& attr, void* context);
// EADDRNOTAVAIL: not a member. Waits until the program has acknowledged the group's events.
Result<void> leave_multicast(CmId& id, const sockaddr* address);

// MULTICAST_JOIN is being fetched: the id's queue pair, if it has one, enters the group; else MULTICAST_ERROR.
void fetch_membership(CmEvent& event);

}  // namespace nicless::cm
