// SPDX-License-Identifier: MIT
#include "wire/io/group_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "wire/addressing.h"
#include "wire/io/raw_syscalls.h"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

namespace nicless::wire {
namespace {

enum class Change { Join, Leave };

// 0 or -errno.
int change(int fd, const Gid& group, unsigned interface, Change what) {
  if (group.is_ipv4()) {
    ip_mreqn request{};
    request.imr_multiaddr = ipv4_of(group);
    request.imr_ifindex = static_cast<int>(interface);
    const int name = what == Change::Join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP;
    return raw::setsockopt(fd, IPPROTO_IP, name, request);
  }
  ipv6_mreq request{};
  request.ipv6mr_multiaddr = ipv6_of(group);
  request.ipv6mr_interface = interface;
  return raw::setsockopt(fd, IPPROTO_IPV6, what == Change::Join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, request);
}

// One interface that takes it is enough: others may have no addresses of this version.
queue::Result<void> join_on(int fd, const Gid& group, std::span<const unsigned> interfaces) {
  int failure = -ENODEV;
  bool has_joined = false;
  for (const unsigned interface : interfaces) {
    const int joined = change(fd, group, interface, Change::Join);
    if (joined < 0) {
      failure = joined;
    } else {
      has_joined = true;
    }
  }
  if (has_joined) return {};
  return queue::error(-failure,
                      "no interface joins the IP multicast group " + to_string(group) + ": " + std::strerror(-failure));
}

// ff02:: is another group on each link, and its socket is bound to one link.
bool has_link_scope(const Gid& group) {
  return !group.is_ipv4() && (group.bytes[1] & std::byte{0x0f}) <= std::byte{0x02};
}

SocketConfig config_for(const Gid& group, unsigned scope) {
  SocketConfig config;
  to_socket_address({group, kRoceUdpPort}, group.is_ipv4() ? AF_INET : AF_INET6, scope, config.address);
  config.reuse_address = true;
  config.v6_only = true;
  return config;
}

}  // namespace

queue::Result<std::vector<int>> GroupSockets::join(const Gid& group, std::span<const unsigned> interfaces,
                                                   const UdpSocket& own) {
  queue::Result<void> opened = queue::error(ENODEV, "no interface of the device is up");
  if (has_link_scope(group)) {
    bool has_one = false;
    for (const unsigned& interface : interfaces) {
      opened = open(group, interface, std::span(&interface, 1));
      has_one = has_one || opened;
    }
    if (has_one) return descriptors(group);
  } else {
    opened = open(group, 0, interfaces);
    if (opened) return descriptors(group);
  }
  if (opened.error().errno_value != EADDRINUSE || own.port() != kRoceUdpPort) return opened.error();
  if (auto joined = join_on(own.fd(), group, interfaces); !joined) return joined.error();
  heard_by_own_.push_back({group, {interfaces.begin(), interfaces.end()}, own.fd()});
  return std::vector<int>();
}

queue::Result<void> GroupSockets::open(const Gid& group, unsigned scope, std::span<const unsigned> interfaces) {
  auto socket = UdpSocket::open(config_for(group, scope));
  if (!socket) return socket.error();
  socket->tell_ip_options();
  // Only what was joined by this socket, not what any other of this host has. Where the kernel does not take that, the
  // socket, which is bound to the group, hears it on more interfaces than were asked for.
  raw::setsockopt(socket->fd(), IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (!group.is_ipv4()) raw::setsockopt(socket->fd(), IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  if (auto joined = join_on(socket->fd(), group, interfaces); !joined) return joined;
  heard_.push_back({group, std::move(*socket)});
  return {};
}

void GroupSockets::close() {
  heard_.clear();
  heard_by_own_.clear();
}

std::vector<int> GroupSockets::descriptors(const Gid& group) const {
  std::vector<int> fds;
  for (const Heard& heard : heard_) {
    if (heard.group == group) fds.push_back(heard.socket.fd());
  }
  return fds;
}

void GroupSockets::leave(const Gid& group) {
  std::erase_if(heard_, [&](const Heard& heard) { return heard.group == group; });
  for (const HeardByOwn& heard : heard_by_own_) {
    if (heard.group != group) continue;
    for (const unsigned interface : heard.interfaces) change(heard.fd, group, interface, Change::Leave);
  }
  std::erase_if(heard_by_own_, [&](const HeardByOwn& heard) { return heard.group == group; });
}

}  // namespace nicless::wire
