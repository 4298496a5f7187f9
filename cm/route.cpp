// SPDX-License-Identifier: MIT
#include "cm/route.h"

#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "cm/address.h"

namespace nicless::cm {
namespace {

constexpr std::uint16_t kDiscardPort = 9;  // RFC 863: what is sent there is thrown away

// The next error of the socket's error queue (ip(7), IP_RECVERR), if there is one.
std::optional<sock_extended_err> next_error(int fd) {
  alignas(cmsghdr) std::array<char, 512> control;
  msghdr message{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::syscall(SYS_recvmsg, fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
  const cmsghdr* first = CMSG_FIRSTHDR(&message);
  sock_extended_err error{};
  if (first != nullptr) std::memcpy(&error, CMSG_DATA(first), sizeof error);
  return error;
}

// "Host unreachable" is what this machine says when the neighbour does not answer. Everything else comes from somebody
// who is there: the host (port unreachable) or a router (time exceeded).
bool is_host_unreachable(const sock_extended_err& error) {
  if (error.ee_origin == SO_EE_ORIGIN_ICMP) return error.ee_type == ICMP_UNREACH && error.ee_code == ICMP_UNREACH_HOST;
  return error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == ICMP6_DST_UNREACH &&
         error.ee_code == ICMP6_DST_UNREACH_ADDR;
}

}  // namespace

ProbeSocket::ProbeSocket(sa_family_t family)
    : fd_(static_cast<int>(::syscall(SYS_socket, family, SOCK_DGRAM | SOCK_CLOEXEC, 0))) {}

ProbeSocket::~ProbeSocket() {
  if (fd_ >= 0) ::syscall(SYS_close, fd_);
}

bool ProbeSocket::bind(const sockaddr& address) {
  return ::syscall(SYS_bind, fd_, &address, address_bytes(address.sa_family)) == 0;
}

bool ProbeSocket::connect(const sockaddr& address) {
  sockaddr_storage target = copy_address(address);
  set_port(target, kDiscardPort);
  return ::syscall(SYS_connect, fd_, &target, address_bytes(address.sa_family)) == 0;
}

bool ProbeSocket::name(sockaddr_storage& address) {
  socklen_t bytes = sizeof address;
  return ::syscall(SYS_getsockname, fd_, &address, &bytes) == 0;
}

unsigned ProbeSocket::mtu(sa_family_t family) {
  int value = 0;
  socklen_t bytes = sizeof value;
  const int level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const int option = family == AF_INET6 ? IPV6_MTU : IP_MTU;
  return ::syscall(SYS_getsockopt, fd_, level, option, &value, &bytes) == 0 ? static_cast<unsigned>(value) : 1500;
}

// Where an option is not taken, no error is seen, and a host that is not there is one that does not answer.
bool ProbeSocket::solicit(sa_family_t family) {
  const int one = 1;
  const auto set = [&](int level, int option) { ::syscall(SYS_setsockopt, fd_, level, option, &one, sizeof one); };
  set(IPPROTO_IP, IP_RECVERR);
  set(IPPROTO_IP, IP_TTL);
  if (family == AF_INET6) {
    set(IPPROTO_IPV6, IPV6_RECVERR);
    set(IPPROTO_IPV6, IPV6_UNICAST_HOPS);
  }
  return ::syscall(SYS_sendto, fd_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) == 0;
}

HostSearch::Sight ProbeSocket::look() {
  int waiting_bytes = 0;
  if (::syscall(SYS_ioctl, fd_, SIOCOUTQ, &waiting_bytes) == 0 && waiting_bytes > 0) return HostSearch::Sight::Pending;
  bool is_lost = false;
  while (const auto error = next_error(fd_)) is_lost = is_lost || is_host_unreachable(*error);
  return is_lost ? HostSearch::Sight::Lost : HostSearch::Sight::Found;
}

Result<Route> look_up_route(const sockaddr& destination, const sockaddr* from) {
  ProbeSocket socket(destination.sa_family);
  if (!socket.is_open()) return queue::error(errno, "no socket can be opened to look up the route");
  if (from != nullptr) {
    if (from->sa_family != destination.sa_family)
      return queue::error(EINVAL, "source and destination are of different address families");
    sockaddr_storage source = copy_address(*from);
    set_port(source, 0);
    if (!socket.bind(as_sockaddr(source)))
      return queue::error(errno, "this machine has no address " + to_string(*from) + " to connect from");
  }
  if (!socket.connect(destination)) return queue::error(errno, "there is no route to " + to_string(destination));
  Route route;
  if (!socket.name(route.source)) return queue::error(errno, "the route has no source address");
  set_port(route.source, 0);
  route.mtu_bytes = socket.mtu(destination.sa_family);
  return route;
}

// IP (as long as IPv6), UDP, BTH, the longest extended headers and the ICRC have to fit besides the payload.
ibv_mtu path_mtu_for(unsigned mtu_bytes) {
  constexpr unsigned kHeaders = 40 + 8 + 12 + 4 + 28 + 4;
  const unsigned payload = mtu_bytes > kHeaders ? mtu_bytes - kHeaders : 0;
  if (payload >= 4096) return IBV_MTU_4096;
  if (payload >= 2048) return IBV_MTU_2048;
  if (payload >= 1024) return IBV_MTU_1024;
  if (payload >= 512) return IBV_MTU_512;
  return IBV_MTU_256;
}

}  // namespace nicless::cm
