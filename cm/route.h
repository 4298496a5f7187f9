// SPDX-License-Identifier: MIT
// What the operating system knows of the way to an address, asked through UDP sockets that only ask: the source address
// and the MTU of the route, and whether the host, or the router before it, is there. Any thread; root is not needed.
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include "cm/host_search.h"
#include "queue/result.h"

namespace nicless::cm {

using queue::Result;

struct Route {
  sockaddr_storage source{};  // the address packets leave with; port 0
  unsigned mtu_bytes = 0;     // of the route
};

// from: null or the source address to use. ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL as connect(2) and bind(2) say.
Result<Route> look_up_route(const sockaddr& destination, const sockaddr* from);

// The path MTU that fits an interface MTU, as the kernel's RoCE derives it: 1500 -> 1024, 65536 -> 4096.
ibv_mtu path_mtu_for(unsigned mtu_bytes);

// Raw system calls, because a program may interpose libc's.
class ProbeSocket {
 public:
  explicit ProbeSocket(sa_family_t family);
  ~ProbeSocket();
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  bool is_open() const { return fd_ >= 0; }
  bool bind(const sockaddr& address);
  bool connect(const sockaddr& address);  // at the discard port, whatever the address's is
  bool name(sockaddr_storage& address);
  unsigned mtu(sa_family_t family);

  // Connected: makes the kernel look for the first host on the way, with an empty datagram to it that no program gets
  // and that no router passes on. False: it cannot be sent, and nothing will be seen.
  bool solicit(sa_family_t family);
  // What has become of that. A datagram waits in the socket for the neighbour to be found, and is gone with an error
  // when the kernel stops looking (Linux: after three seconds).
  HostSearch::Sight look();

 private:
  const int fd_;
};

}  // namespace nicless::cm
