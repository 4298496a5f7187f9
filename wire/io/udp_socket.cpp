// SPDX-License-Identifier: MIT
#include "wire/io/udp_socket.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <string>

#include "wire/io/raw_syscalls.h"
#include "wire/io/udp_options.h"

namespace nicless::wire {

namespace {

constexpr int kDefaultHopLimit = 64;  // the default of IpOptions: such datagrams need no control message

// Sockets of this process, for close_inherited_sockets(). More than fit stay open in a child, which is harmless.
constexpr std::size_t kTrackedSocketsMax = 1024;
std::array<std::atomic<int>, kTrackedSocketsMax> tracked_sockets;  // fd + 1; 0: free

void track(int fd) {
  for (auto& slot : tracked_sockets) {
    int free = 0;
    if (slot.compare_exchange_strong(free, fd + 1)) return;
  }
}

void untrack(int fd) {
  for (auto& slot : tracked_sockets) {
    int tracked = fd + 1;
    if (slot.compare_exchange_strong(tracked, 0)) return;
  }
}

// Of several results the first that is a failure (a negative errno), else 0.
int first_failure(std::initializer_list<int> results) {
  for (const int result : results) {
    if (result < 0) return result;
  }
  return 0;
}

// Without packet info nobody knows which address a datagram was sent to, which the ICRC covers: that has to be there.
// What else may be missing on an old kernel or in a sandbox leaves a socket that works on an ordinary network: without
// don't-fragment the id is not 0, and a receiver has to guess it; without errors a peer that is not there is a
// timeout; without a hop limit of its own the system's default holds, 64 as well.
int set_ipv4_options(int fd) {
  // PROBE sets don't-fragment (and with it an id of 0, which the ICRC covers) and does not believe path MTUs that
  // anybody may have told the kernel.
  raw::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  raw::setsockopt(fd, IPPROTO_IP, IP_RECVERR, 1);
  raw::setsockopt(fd, IPPROTO_IP, IP_TTL, kDefaultHopLimit);
  raw::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_TTL, kDefaultHopLimit);
  return raw::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

int set_ipv6_options(int fd) {
  raw::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
  raw::setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
  raw::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
  raw::setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, kDefaultHopLimit);
  raw::setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, kDefaultHopLimit);
  raw::setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);  // hardware sends RoCE v2 without UDP checksum
  return raw::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

// The system gives what it allows, and counts as success; without UDP_GRO datagrams come one by one.
void set_receive_options(int fd, int buffer_bytes) {
  if (buffer_bytes > 0) raw::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, buffer_bytes);
  raw::setsockopt(fd, IPPROTO_UDP, UDP_GRO, 1);
}

// Nobody reads this socket: without a filter, strangers' datagrams would keep it readable for ever.
int drop_arrivals(int fd) {
  sock_filter take_nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog program{1, take_nothing};
  return raw::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, program);
}

// What the socket cannot do without; 0 or -errno.
int set_options(int fd, const SocketConfig& config) {
  const bool is_ipv6 = config.address.any.sa_family == AF_INET6;
  if (config.buffer_bytes > 0) raw::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, config.buffer_bytes);
  if (!config.sends_only) set_receive_options(fd, config.buffer_bytes);
  return first_failure({
      is_ipv6 ? raw::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, config.v6_only ? 1 : 0) : 0,
      config.reuse_address ? raw::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, 1) : 0,
      config.sends_only ? drop_arrivals(fd) : 0,
      set_ipv4_options(fd),
      is_ipv6 ? set_ipv6_options(fd) : 0,
  });
}

int bind_to(int fd, const SocketAddress& address) {
  return raw::bind(fd, &address.any, address.any.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
}

}  // namespace

SocketConfig any_address() {
  SocketConfig config;
  config.address.v6 = {};
  config.address.v6.sin6_family = AF_INET6;
  const int probe = raw::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool has_ipv6 = probe >= 0 && raw::bind(probe, &config.address.any, sizeof config.address.v6) == 0;
  if (probe >= 0) raw::close(probe);
  if (has_ipv6) return config;
  config.address.v4 = {};
  config.address.v4.sin_family = AF_INET;
  return config;
}

queue::Result<UdpSocket> UdpSocket::open(const SocketConfig& config) {
  UdpSocket socket;
  socket.family_ = config.address.any.sa_family;
  const int fd = raw::socket(socket.family_, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return queue::error(-fd, "no UDP socket can be opened");
  socket.fd_ = fd;
  track(fd);
  if (const int done = set_options(fd, config); done < 0) {
    return queue::error(-done, std::string("a UDP socket cannot be set up for RoCE v2: ") + std::strerror(-done));
  }
  if (const int bound = bind_to(fd, config.address); bound < 0) {
    return queue::error(-bound, "UDP " + to_string(endpoint_of(config.address)) + " cannot be bound");
  }
  SocketAddress name{};
  socklen_t bytes = sizeof name;
  if (const int named = raw::getsockname(fd, &name.any, &bytes); named < 0) {
    return queue::error(-named, "the socket does not tell its port");
  }
  socket.port_ = endpoint_of(name).port;
  socket.can_segment_ = raw::setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
  return socket;
}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
  close();
  fd_ = other.fd_;
  family_ = other.family_;
  port_ = other.port_;
  can_segment_ = other.can_segment_;
  tells_ip_options_ = other.tells_ip_options_;
  other.fd_ = -1;
  return *this;
}

std::size_t UdpSocket::receive_buffer_bytes() const {
  int bytes = 0;
  return raw::getsockopt(fd_, SOL_SOCKET, SO_RCVBUF, bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

void UdpSocket::tell_ip_options() {
  if (tells_ip_options_) return;
  tells_ip_options_ = true;
  // Where one is not taken, programs see a 0 in its place.
  raw::setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, 1);
  raw::setsockopt(fd_, IPPROTO_IP, IP_RECVTTL, 1);
  if (family_ != AF_INET6) return;
  raw::setsockopt(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
  raw::setsockopt(fd_, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

void UdpSocket::close() {
  if (fd_ < 0) return;
  untrack(fd_);
  raw::close(fd_);
  fd_ = -1;
}

void close_inherited_sockets() {
  for (auto& slot : tracked_sockets) {
    const int fd = slot.exchange(0) - 1;
    if (fd >= 0) raw::close(fd);
  }
}

}  // namespace nicless::wire
