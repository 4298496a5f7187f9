// SPDX-License-Identifier: MIT
// From addresses to devices and routes: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3). The operating
// system's routing table decides which source address leads to a destination; the device that has it in its GID table
// is the one. rdma_resolve_addr waits for the host to be found on its link; the rest is immediate, yet reported as the
// events the man pages promise.
#pragma once

#include <sys/socket.h>

#include <span>

#include "cm/cm_id.h"
#include "cm/route.h"
#include "queue/result.h"

namespace nicless::cm {

// What is known already while a host is looked for.
struct AddressSearch {
  Route route;
  sockaddr_storage destination{};
  std::uint16_t source_port = 0;
  int timeout_ms = 0;
  CmId::Stage before = CmId::Stage::Idle;
};

// ENODEV: AF_IB, except for a wildcard to listen on.
Result<void> bind_addr(CmId& id, const sockaddr* address);
// ADDR_RESOLVED follows, or ADDR_ERROR: -ETIMEDOUT if the host is not found within timeout_ms (less than zero: for
// ever), -ENODEV if the way there begins at no RDMA device. What the routing table knows is an error of the call, and
// so is AF_IB: ENODEV.
Result<void> resolve_addr(CmId& id, const sockaddr* source, const sockaddr* destination, int timeout_ms);
Result<void> resolve_route(CmId& id);  // has nothing to wait for, so its timeout_ms means nothing
// route.path_rec, from what the id knows of its route.
void show_path(CmId& id);
// RDMA_OPTION_IB_PATH of rdma_set_option(3), instead of rdma_resolve_route: the program knows the path, an array of
// ibv_path_data. EINVAL: none that is primary and goes both ways, or it leads elsewhere. ROUTE_RESOLVED follows; nobody
// waits for it here.
Result<void> set_path(CmId& id, std::span<const std::byte> paths);

// The agent's time has come to look for hosts.
void look_for_hosts(Agent& agent, Instant now);

}  // namespace nicless::cm
