// SPDX-License-Identifier: MIT
// From addresses to devices and routes: rdma_bind_addr(3), rdma_resolve_addr(3), rdma_resolve_route(3). The operating
// system's routing table decides which source address leads to a destination; the device that has it in its GID table
// is the one. All of it is immediate, yet reported as the events the man pages promise.
#pragma once

#include <sys/socket.h>

#include <span>

#include "cm/cm_id.h"
#include "queue/result.h"

namespace nicless::cm {

struct Route {
  sockaddr_storage source{};  // the address packets leave with; port 0
  unsigned mtu_bytes = 0;     // of the route
};

// from: null or the source address to use. ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL as connect(2) and bind(2) say.
Result<Route> look_up_route(const sockaddr& destination, const sockaddr* from);

// The path MTU that fits an interface MTU, as the kernel's RoCE derives it: 1500 -> 1024, 65536 -> 4096.
ibv_mtu path_mtu_for(unsigned mtu_bytes);

// ENODEV: AF_IB, except for a wildcard to listen on.
Result<void> bind_addr(CmId& id, const sockaddr* address);
Result<void> resolve_addr(CmId& id, const sockaddr* source, const sockaddr* destination);
Result<void> resolve_route(CmId& id);
// route.path_rec, from what the id knows of its route.
void show_path(CmId& id);
// RDMA_OPTION_IB_PATH of rdma_set_option(3), instead of rdma_resolve_route: the program knows the path, an array of
// ibv_path_data. EINVAL: none that is primary and goes both ways, or it leads elsewhere. ROUTE_RESOLVED follows; nobody
// waits for it here.
Result<void> set_path(CmId& id, std::span<const std::byte> paths);

}  // namespace nicless::cm
