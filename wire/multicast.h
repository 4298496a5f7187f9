// SPDX-License-Identifier: MIT
// Multicast groups of unreliable datagrams: what a multicast GID is as an IP group, and which queue pairs of an engine
// belong to one. IBTA 10.5, A17.4.6; docs/adr/0011. Values and a table; port-bound.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "queue/types.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

// ff00::/8, or IPv4's 224.0.0.0/4 as ::ffff:224.0.0.0/100: what rdma_is_multicast_addr() of Linux takes for one.
bool is_multicast(const Gid& gid);

// The IPv4 group of a multicast GID. ::ffff:a.b.c.d names one, and so does ffXX::ffff:a.b.c.d, as Linux' rdma_cm writes
// it for RoCE v1. Any other GID has one of 239.0.0.0/8 that is computed from its bits, so that a sender whose own
// address is IPv4 reaches it, too.
Gid ipv4_group(const Gid& gid);
// The IPv6 group: the GID itself, but that the scope of an interface (ff01::) becomes that of a link, as an adapter's
// packets leave their host whatever the scope. Nothing for a GID that names an IPv4 group.
std::optional<Gid> ipv6_group(const Gid& gid);

struct MulticastMember {
  queue::Qpn qpn{};
  // Addresses of this host: what the queue pair itself sends from them is not given to it. Empty: it hears itself.
  std::vector<Gid> own_addresses;
};

class MulticastTable {
 public:
  // A queue pair may be in a group by several GIDs: it is in it until each was taken back.
  void attach(const Gid& group, const MulticastMember& member);
  void detach(const Gid& group, queue::Qpn qpn);
  bool has(const Gid& group) const { return groups_.find(group) != groups_.end(); }

  // The members that a packet with this source is for.
  template <typename F>
  void for_each(const Gid& group, queue::Qpn source, const Gid& from, F&& f) const {
    const auto found = groups_.find(group);
    if (found == groups_.end()) return;
    for (const Entry& entry : found->second) {
      if (!is_own(entry.member, source, from)) f(entry.member.qpn);
    }
  }

 private:
  struct Entry {
    MulticastMember member;
    std::uint32_t times = 1;
  };
  static bool is_own(const MulticastMember& member, queue::Qpn source, const Gid& from);

  std::map<Gid, std::vector<Entry>> groups_;
};

}  // namespace nicless::wire
