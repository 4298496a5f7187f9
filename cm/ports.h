// SPDX-License-Identifier: MIT
// Port spaces on the operating system's UDP ports: who is bound where, who listens, and the sockets behind it. The
// operating system says whether a port is free among processes; within this one the port spaces share a socket, so
// PS_TCP and PS_UDP may both have the same number, and so may ids that agree to share one. Processes do not share: of
// two sockets on a UDP port one hears nothing. Called with the agent's lock held, and what is returned or copied from
// here dies under it as well.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "queue/result.h"
#include "queue/rng.h"
#include "wire/packet/endpoint.h"

struct nicless_gsi;

namespace nicless::cm {

struct CmId;
using queue::Result;

// A UDP socket of this process. It is there as long as somebody holds it: each binding does, and each request that a
// listener has taken, until its peer can have no use for the port any more (ConnectionEntry, SidrAnswer).
struct PortSocket {
  nicless_gsi* gsi = nullptr;
  std::uint16_t port = 0;
  bool is_wildcard = false;
  bool takes_ipv6 = false;  // a wildcard of AF_INET6
  bool takes_ipv4 = false;
  wire::Gid address;  // unless wildcard
};

struct Binding {
  std::shared_ptr<PortSocket> socket;
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
  // EADDRINUSE, EACCES, EADDRNOTAVAIL as bind(2) says, and EADDRINUSE for a second one in this process. A socket that
  // is in the way and that only requests hold is given up: once the unused ones are closed, the same call may succeed.
  Result<Binding> bind(const BindRequest& request, CmId& owner);
  // EADDRINUSE: who shares a port may not listen where another does.
  Result<void> check_listening(const Binding& binding, const CmId& owner) const;
  // From now on others may share it.
  void share(const Binding& binding, const CmId& owner);
  // Whether an IPv6 wildcard hears IPv4, too. EINVAL: its socket does not.
  Result<void> set_v6_only(Binding& binding, const CmId& owner, bool is_v6_only);
  // A number that no binding has, where the operating system does not give them.
  std::uint16_t unused_port(queue::Rng& rng) const;
  void release(const Binding& binding, const CmId& owner);
  // Sockets that nobody holds any more: to be closed, without the agent's lock.
  std::vector<nicless_gsi*> take_unused();
  // Who listens there: an exact address before a wildcard.
  CmId* find_listener(rdma_port_space space, std::uint16_t port, const wire::Gid& destination) const;

 private:
  using Socket = std::shared_ptr<PortSocket>;
  Result<Socket> socket_for(const BindRequest& request, const Binding& wanted);
  Result<Socket> open(const BindRequest& request, const Binding& wanted);
  void give_up_unbound(std::uint16_t port, const Binding& wanted);
  bool is_bound(const PortSocket& socket) const;

  struct Bound {
    Binding binding;
    CmId* owner;
  };
  std::vector<std::weak_ptr<PortSocket>> sockets_;
  std::vector<nicless_gsi*> unused_;
  std::unordered_map<std::uint16_t, std::vector<Bound>> bound_;
};

}  // namespace nicless::cm
