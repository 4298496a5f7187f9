// SPDX-License-Identifier: MIT
// Endpoints as socket addresses and back. An IPv6 socket names IPv4 peers by mapped addresses, as a GID does.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "wire/packet/endpoint.h"

namespace nicless::wire {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

Gid gid_of(const in_addr& address);
Gid gid_of(const in6_addr& address);
in_addr ipv4_of(const Gid& gid);  // its last four bytes
in6_addr ipv6_of(const Gid& gid);

Endpoint endpoint_of(const SocketAddress& address);

// Writes `endpoint` as a socket of `family` wants it; returns its length in bytes. `interface` is needed by IPv6
// addresses of a link only, multicast groups included.
socklen_t to_socket_address(const Endpoint& endpoint, int family, unsigned interface, SocketAddress& out);

bool is_link_local(const Gid& gid);   // fe80::/10
bool is_unspecified(const Gid& gid);  // :: or 0.0.0.0

// The index of the interface that has this address; 0 when none has. Reads the kernel's list anew when the address is
// not known yet.
unsigned interface_of(const Gid& local);
// In a forked child: another thread of the parent's may have been at the table that interface_of() keeps.
// Async-signal-safe.
void forget_interfaces();

}  // namespace nicless::wire
