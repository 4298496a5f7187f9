// SPDX-License-Identifier: MIT
#include "wire/io/receive_batch.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "wire/io/control_message.h"
#include "wire/io/raw_syscalls.h"
#include "wire/io/udp_options.h"

namespace nicless::wire {

ReceiveBatch::ReceiveBatch() : bytes_(new std::byte[kMessagesMax * kMessageBytes]) {
  for (std::size_t i = 0; i < kMessagesMax; ++i) {
    vectors_[i] = {bytes_.get() + i * kMessageBytes, kMessageBytes};
    messages_[i].msg_hdr.msg_iov = &vectors_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
    messages_[i].msg_hdr.msg_name = &names_[i];
    messages_[i].msg_hdr.msg_control = controls_[i].bytes.data();
  }
  prepare(kMessagesMax);
}

int ReceiveBatch::receive(const UdpSocket& socket) {
  prepare(message_count_);  // only what the last call wrote over
  message_count_ = next_message_ = 0;
  rest_ = {};
  local_port_ = socket.port();
  has_ip_options_ = socket.tells_ip_options();
  int count = has_backlog_ ? raw::recvmmsg(socket.fd(), messages_.data(), kMessagesMax) : receive_one(socket.fd());
  if (count == -EAGAIN || count == -EINTR) count = 0;
  has_backlog_ = count > 0;
  if (count > 0) message_count_ = static_cast<std::size_t>(count);
  return count;
}

// Where messages come one by one, a second look at the socket for each of them is in vain, and costs a third of the
// first.
int ReceiveBatch::receive_one(int fd) {
  const int bytes = raw::recvmsg(fd, &messages_[0].msg_hdr, MSG_DONTWAIT);
  if (bytes < 0) return bytes;
  messages_[0].msg_len = static_cast<unsigned>(bytes);
  return 1;
}

bool ReceiveBatch::next(InDatagram& out) {
  if (rest_.empty() && !open_next()) return false;
  current_.bytes = rest_.first(std::min(segment_bytes_, rest_.size()));
  rest_ = rest_.subspan(current_.bytes.size());
  out = current_;
  ++current_.likely_ip_id;
  return true;
}

void ReceiveBatch::prepare(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    messages_[i].msg_hdr.msg_namelen = sizeof(SocketAddress);
    messages_[i].msg_hdr.msg_controllen = sizeof(Control);
    messages_[i].msg_hdr.msg_flags = 0;
  }
}

// One that was cut is no packet. An empty one is the engine's to count.
bool ReceiveBatch::open_next() {
  while (next_message_ < message_count_) {
    const std::size_t index = next_message_++;
    if ((messages_[index].msg_hdr.msg_flags & MSG_TRUNC) != 0) continue;
    open_message(messages_[index], index);
    return true;
  }
  return false;
}

void ReceiveBatch::open_message(const mmsghdr& message, std::size_t index) {
  msghdr header = message.msg_hdr;
  current_.from = endpoint_of(names_[index]);
  current_.to = {local_address(header), local_port_};
  current_.likely_ip_id = 0;
  if (has_ip_options_) current_.ip = ip_options(header);
  rest_ = std::span(bytes_.get() + index * kMessageBytes, message.msg_len);
  const auto joined = find_control<int>(header, IPPROTO_UDP, UDP_GRO);
  segment_bytes_ = joined && *joined > 0 ? static_cast<std::size_t>(*joined) : rest_.size();
}

Gid ReceiveBatch::local_address(msghdr& message) const {
  if (const auto info = find_control<in_pktinfo>(message, IPPROTO_IP, IP_PKTINFO)) return gid_of(info->ipi_addr);
  if (const auto info = find_control<in6_pktinfo>(message, IPPROTO_IPV6, IPV6_PKTINFO)) return gid_of(info->ipi6_addr);
  return {};
}

IpOptions ReceiveBatch::ip_options(msghdr& message) {
  IpOptions options;
  if (const auto tos = find_control<std::uint8_t>(message, IPPROTO_IP, IP_TOS)) {
    options.traffic_class = *tos;
  } else if (const auto traffic_class = find_control<int>(message, IPPROTO_IPV6, IPV6_TCLASS)) {
    options.traffic_class = static_cast<std::uint8_t>(*traffic_class);
  }
  auto hop_limit = find_control<int>(message, IPPROTO_IP, IP_TTL);
  if (!hop_limit) hop_limit = find_control<int>(message, IPPROTO_IPV6, IPV6_HOPLIMIT);
  if (hop_limit) options.hop_limit = static_cast<std::uint8_t>(*hop_limit);
  return options;
}

}  // namespace nicless::wire
