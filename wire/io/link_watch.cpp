// SPDX-License-Identifier: MIT
#include "wire/io/link_watch.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "wire/io/raw_syscalls.h"

namespace nicless::wire {

queue::Result<std::unique_ptr<LinkWatch>> LinkWatch::open() {
  const int fd = raw::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return queue::error(-fd, "changes of network interfaces cannot be watched");
  auto watch = std::unique_ptr<LinkWatch>(new LinkWatch(fd));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  const int bound = raw::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (bound < 0) return queue::error(-bound, "changes of network interfaces cannot be watched");
  return watch;
}

LinkWatch::~LinkWatch() {
  raw::close(fd_);
}

// Until nothing is left: messages that did not fit are lost (ENOBUFS once), which costs nothing here.
void LinkWatch::drain() {
  std::array<std::byte, 8192> ignored;
  constexpr long kNoBuffers = -ENOBUFS;
  for (;;) {
    const long got = raw::call(SYS_recvfrom, fd_, ignored.data(), ignored.size(), MSG_DONTWAIT, nullptr, nullptr);
    if (got <= 0 && got != kNoBuffers) return;
  }
}

}  // namespace nicless::wire
