// SPDX-License-Identifier: MIT
#include "tests/bench/udp_end.h"

#include <algorithm>
#include <cstring>

#include "tests/bench/loopback.h"
#include "tests/bench/udp_options.h"

namespace nicless::bench {

namespace {

constexpr std::size_t kBthBytes = 12;
constexpr std::size_t kIcrcBytes = 4;

int open_socket(const UdpShape& shape) {
  if (!shape.is_dual_stack) return bound_socket(SOCK_DGRAM);
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  check(fd >= 0, "socket");
  set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  sockaddr_in6 wildcard{};
  wildcard.sin6_family = AF_INET6;
  check(bind(fd, reinterpret_cast<const sockaddr*>(&wildcard), sizeof wildcard) == 0, "bind");
  return fd;
}

// Where a socket of this machine is reached: 127.0.0.1, IPv4-mapped if it is bound to the IPv6 wildcard.
socklen_t loopback_name(int fd, sockaddr_storage& name) {
  socklen_t bytes = sizeof name;
  check(getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) == 0, "getsockname");
  if (name.ss_family == AF_INET6) {
    const unsigned char mapped[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(&name)->sin6_addr, mapped, sizeof mapped);
  }
  return bytes;
}

}  // namespace

UdpEnd::UdpEnd(const UdpShape& shape) : shape_(shape), fd_(open_socket(shape)) {
  set_option(fd_, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
  if (shape.has_packet_info) {
    set_option(fd_, IPPROTO_IP, IP_PKTINFO, 1);
    if (shape.is_dual_stack) set_option(fd_, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  }
  if (shape.has_gro) set_option(fd_, SOL_UDP, UDP_GRO, 1);
  if (!shape.keeps_buffers) raise_buffers(fd_);
  in_.resize((shape.has_batches ? kBatchMax : 1) * kDatagramBytesMax);
  out_.resize(kDatagramBytesMax);
  for (std::size_t i = 0; i < kBatchMax; ++i) fill_incoming(i);
}

UdpEnd::~UdpEnd() {
  close(fd_);
}

void UdpEnd::aim_at(const UdpEnd& peer) {
  peer_bytes_ = loopback_name(peer.fd_, peer_);
  if (shape_.is_dual_stack || shape_.is_unconnected) return;
  check(connect(fd_, reinterpret_cast<const sockaddr*>(&peer_), peer_bytes_) == 0, "connect");
  peer_bytes_ = 0;
}

void UdpEnd::send(std::span<const std::size_t> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) fill_outgoing(i, sizes[i]);
  check(transmit(sizes.size()) == static_cast<int>(sizes.size()), "send");
}

std::span<const std::size_t> UdpEnd::receive() {
  const int count = wait_for(shape_.is_blocking, [this] { return take(); });
  return {sizes_.data(), static_cast<std::size_t>(count)};
}

// The number of datagrams sent, or -1.
int UdpEnd::transmit(std::size_t count) {
  if (shape_.has_batches) return sendmmsg(fd_, out_messages_.data(), static_cast<unsigned>(count), 0);
  for (std::size_t i = 0; i < count; ++i) {
    const msghdr& message = out_messages_[i].msg_hdr;
    const iovec& whole = out_vectors_[i][0];
    const bool is_plain = message.msg_name == nullptr && message.msg_control == nullptr;
    const ssize_t sent = is_plain ? ::send(fd_, whole.iov_base, whole.iov_len, 0) : sendmsg(fd_, &message, 0);
    if (sent < 0) return -1;
  }
  return static_cast<int>(count);
}

// The number of datagrams taken, or -1.
int UdpEnd::take() {
  const int flags = shape_.is_blocking ? MSG_WAITFORONE : MSG_DONTWAIT;
  if (shape_.has_batches) {
    const int count = recvmmsg(fd_, in_messages_.data(), kBatchMax, flags, nullptr);
    for (int i = 0; i < count; ++i) {
      sizes_[static_cast<std::size_t>(i)] = in_messages_[static_cast<std::size_t>(i)].msg_len;
      fill_incoming(static_cast<std::size_t>(i));
    }
    return count;
  }
  const bool wants_message = shape_.has_packet_info || shape_.has_gro;
  const ssize_t got = wants_message ? recvmsg(fd_, &in_messages_[0].msg_hdr, flags & MSG_DONTWAIT)
                                    : recv(fd_, in_.data(), in_.size(), flags & MSG_DONTWAIT);
  if (got < 0) return -1;
  sizes_[0] = static_cast<std::size_t>(got);
  fill_incoming(0);
  return 1;
}

void UdpEnd::fill_outgoing(std::size_t index, std::size_t bytes) {
  msghdr& message = out_messages_[index].msg_hdr;
  auto& vectors = out_vectors_[index];
  message = {};
  message.msg_iov = vectors.data();
  if (shape_.has_batches && bytes > kBthBytes + kIcrcBytes) {
    const std::size_t payload_bytes = bytes - kBthBytes - kIcrcBytes;
    vectors = {{{out_.data(), kBthBytes},
                {out_.data() + kBthBytes, payload_bytes},
                {out_.data() + kBthBytes + payload_bytes, kIcrcBytes}}};
    message.msg_iovlen = vectors.size();
  } else {
    vectors[0] = {out_.data(), bytes};
    message.msg_iovlen = 1;
  }
  if (peer_bytes_ != 0) {
    message.msg_name = &peer_;
    message.msg_namelen = peer_bytes_;
  }
  if (!shape_.has_packet_info) return;
  in_pktinfo info{};
  info.ipi_spec_dst.s_addr = htonl(INADDR_LOOPBACK);
  message.msg_control = out_controls_[index].bytes.data();
  message.msg_controllen = CMSG_SPACE(sizeof info);
  cmsghdr* const control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = IPPROTO_IP;
  control->cmsg_type = IP_PKTINFO;
  control->cmsg_len = CMSG_LEN(sizeof info);
  std::memcpy(CMSG_DATA(control), &info, sizeof info);
}

void UdpEnd::fill_incoming(std::size_t index) {
  msghdr& message = in_messages_[index].msg_hdr;
  in_vectors_[index] = {in_.data() + (shape_.has_batches ? index * kDatagramBytesMax : 0), kDatagramBytesMax};
  message = {};
  message.msg_iov = &in_vectors_[index];
  message.msg_iovlen = 1;
  if (shape_.is_unconnected || shape_.is_dual_stack) {
    message.msg_name = &names_[index];
    message.msg_namelen = sizeof names_[index];
  }
  if (!shape_.has_packet_info && !shape_.has_gro) return;
  message.msg_control = in_controls_[index].bytes.data();
  message.msg_controllen = sizeof in_controls_[index].bytes;
}

}  // namespace nicless::bench
