// SPDX-License-Identifier: MIT
// Port spaces on the operating system's UDP ports: who is bound where, who listens, and the sockets behind it. The
// operating system says whether a port is free among processes; within this one the port spaces share a socket, so
// PS_TCP and PS_UDP may both have the same number, and so may ids that agree to share one. Processes do not share: of
// two sockets on a UDP port one hears nothing. Called with the agent's lock held.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "queue/result.h"
#include "queue/rng.h"
#include "wire/packet/endpoint.h"

struct nicless_gsi;

namespace nicless::cm {

struct CmId;
using queue::Result;

// A UDP socket of this process and how many bindings use it.
struct PortSocket {
  nicless_gsi* gsi = nullptr;
  std::uint16_t port = 0;
  bool is_wildcard = false;
  bool takes_ipv6 = false;  // a wildcard of AF_INET6
  bool takes_ipv4 = false;
  wire::Gid address;  // unless wildcard
  int users = 0;
};

struct Binding {
  PortSocket* socket = nullptr;
  rdma_port_space space = RDMA_PS_TCP;
  bool is_wildcard = false;
  bool takes_ipv6 = false;
  bool takes_ipv4 = false;
  bool may_share = false;
  wire::Gid address;
  std::uint16_t port() const { return socket->port; }
  bool takes(const wire::Gid& destination) const;
};

struct BindRequest {
  rdma_port_space space = RDMA_PS_TCP;
  const sockaddr* address = nullptr;  // port 0: any free one
  bool may_share = false;             // RDMA_OPTION_ID_REUSEADDR
  bool v6_only = false;               // RDMA_OPTION_ID_AFONLY
};

class Ports {
 public:
  // EADDRINUSE, EACCES, EADDRNOTAVAIL as bind(2) says, and EADDRINUSE for a second one in this process.
  Result<Binding> bind(const BindRequest& request, CmId& owner);
  // EADDRINUSE: who shares a port may not listen where another does.
  Result<void> check_listening(const Binding& binding, const CmId& owner) const;
  // From now on others may share it.
  void share(const Binding& binding, const CmId& owner);
  // A number that no binding has, where the operating system does not give them.
  std::uint16_t unused_port(queue::Rng& rng) const;
  // Returns the socket to close if that was its last user: outside the agent's lock.
  nicless_gsi* release(const Binding& binding, const CmId& owner);
  // Who listens there: an exact address before a wildcard.
  CmId* find_listener(rdma_port_space space, std::uint16_t port, const wire::Gid& destination) const;

 private:
  Result<PortSocket*> socket_for(const BindRequest& request, const Binding& wanted);
  Result<PortSocket*> open(const BindRequest& request, const Binding& wanted);

  struct Bound {
    Binding binding;
    CmId* owner;
  };
  std::list<PortSocket> sockets_;
  std::unordered_map<std::uint16_t, std::vector<Bound>> bound_;
};

}  // namespace nicless::cm
