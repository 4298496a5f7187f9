// SPDX-License-Identifier: MIT
#include "wire/io/error_queue.h"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include <array>

#include "wire/io/control_message.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::wire {

namespace {

// A flood of ICMP must not keep a turn busy for ever; what is left raises the socket's readiness again.
constexpr int kErrorsPerDrainMax = 256;

bool is_port_unreachable(const sock_extended_err& error) {
  if (error.ee_origin == SO_EE_ORIGIN_ICMP) return error.ee_type == ICMP_UNREACH && error.ee_code == ICMP_UNREACH_PORT;
  return error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == ICMP6_DST_UNREACH &&
         error.ee_code == ICMP6_DST_UNREACH_NOPORT;
}

}  // namespace

void drain_error_queue(const UdpSocket& socket, std::vector<Endpoint>& unreachable) {
  for (int i = 0; i < kErrorsPerDrainMax; ++i) {
    SocketAddress destination{};
    alignas(cmsghdr) std::array<char, 512> control;
    std::array<std::byte, 64> quoted;  // the head of the datagram in question: not needed
    iovec vector{quoted.data(), quoted.size()};
    msghdr message{};
    message.msg_name = &destination;
    message.msg_namelen = sizeof destination;
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (raw::recvmsg(socket.fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    auto error = find_control<sock_extended_err>(message, IPPROTO_IP, IP_RECVERR);
    if (!error) error = find_control<sock_extended_err>(message, IPPROTO_IPV6, IPV6_RECVERR);
    if (error && is_port_unreachable(*error)) unreachable.push_back(endpoint_of(destination));
  }
}

}  // namespace nicless::wire
