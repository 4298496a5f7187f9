// SPDX-License-Identifier: MIT
// The sockets by which a port hears IP multicast groups. All processes and hosts send to a group on the RoCE port,
// 4791, so each group has a socket of its own, bound to the group's address and shared by SO_REUSEADDR: the kernel
// gives every such socket a copy. Nothing is sent by them. Port-bound.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "queue/result.h"
#include "wire/io/udp_socket.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

class GroupSockets {
 public:
  // Hears the group on these interfaces from now on; the descriptors to wait for. own: the port's socket, which hears
  // it itself where it has the wildcard address and port 4791 (strict RoCE v2). The error is bind(2)'s or that of
  // joining.
  queue::Result<std::vector<int>> join(const Gid& group, std::span<const unsigned> interfaces, const UdpSocket& own);
  // The descriptors of a group's sockets, and their end.
  std::vector<int> descriptors(const Gid& group) const;
  void leave(const Gid& group);
  void close();  // of the port, its own socket too

  std::size_t size() const { return heard_.size(); }
  const UdpSocket& socket(std::size_t index) const { return heard_[index].socket; }

 private:
  struct Heard {
    Gid group;
    UdpSocket socket;
  };
  queue::Result<void> open(const Gid& group, unsigned scope, std::span<const unsigned> interfaces);

  std::vector<Heard> heard_;
  struct HeardByOwn {
    Gid group;
    std::vector<unsigned> interfaces;
    int fd = -1;
  };
  std::vector<HeardByOwn> heard_by_own_;
};

}  // namespace nicless::wire
