// SPDX-License-Identifier: MIT
// Socket addresses of the program and GIDs of the wire: the same addresses in two forms. Pure values.
//
// AF_IB names a GID and a service id, of which port space and port are the lower parts: for ports of InfiniBand. As in
// the kernel, where all devices are RoCE's such an address can be a wildcard to listen on, and a multicast group.
#pragma once

#include <infiniband/ib.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "wire/packet/endpoint.h"

namespace nicless::cm {

// Bytes of an address of that family; 0 for a family rdma_cm does not carry here.
socklen_t address_bytes(sa_family_t family);
socklen_t address_bytes(const sockaddr* address);  // 0 also for a null pointer

sockaddr_storage copy_address(const sockaddr& address);
bool is_any(const sockaddr& address);       // 0.0.0.0, :: or the GID of zeroes
bool is_loopback(const sockaddr& address);  // of 127.0.0.0/8, or ::1
bool is_multicast(const sockaddr& address);
std::uint16_t port_of(const sockaddr& address);
void set_port(sockaddr_storage& address, std::uint16_t port);

wire::Gid to_gid(const sockaddr& address);  // IPv4 becomes ::ffff:a.b.c.d
// AF_INET for an IPv4 GID, AF_INET6 for others.
sockaddr_storage to_address(const wire::Gid& gid, std::uint16_t port);
// The same in AF_IB. A port space of 0: any.
sockaddr_ib to_ib_address(const wire::Gid& gid, std::uint16_t port_space, std::uint16_t port);
// The port space that an AF_IB address asks for; 0: any.
std::uint16_t port_space_of(const sockaddr& address);
sockaddr_storage loopback(sa_family_t family, std::uint16_t port);
sockaddr_storage any_address(sa_family_t family, std::uint16_t port);

std::string to_string(const sockaddr& address);  // "127.0.0.1:7471"

inline const sockaddr& as_sockaddr(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr&>(address);
}

}  // namespace nicless::cm
