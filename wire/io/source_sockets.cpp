// SPDX-License-Identifier: MIT
#include "wire/io/source_sockets.h"

#include <netinet/in.h>

#include "wire/io/error_queue.h"
#include "wire/qp/source_port.h"

namespace nicless::wire {
namespace {

constexpr std::size_t kPorts = 0x10000 - kSourcePortFirst;

// IPv4's and IPv6's stand in the same place of the address.
void set_port(SocketAddress& address, std::uint16_t port) {
  if (address.any.sa_family == AF_INET) {
    address.v4.sin_port = htons(port);
  } else {
    address.v6.sin6_port = htons(port);
  }
}

}  // namespace

SourceSockets::SourceSockets(const SocketConfig& own)
    : config_(own), own_port_(endpoint_of(own.address).port), decisions_(kPorts, kUndecided) {
  config_.sends_only = true;
  config_.reuse_address = false;
  sockets_.reserve(kSocketsMax);
}

std::uint16_t SourceSockets::choose(std::uint16_t wanted) {
  if (wanted < kSourcePortFirst) return own_port_;
  std::uint8_t& decision = decisions_[wanted - kSourcePortFirst];
  if (decision == kUndecided) decision = open(wanted);
  return decision == kOwn ? own_port_ : wanted;
}

UdpSocket& SourceSockets::find(std::uint16_t port, UdpSocket& own) {
  if (port < kSourcePortFirst) return own;
  const std::uint8_t decision = decisions_[port - kSourcePortFirst];
  return decision == kUndecided || decision == kOwn ? own : sockets_[decision - 1u];
}

void SourceSockets::drain_errors(std::vector<Endpoint>& unreachable) const {
  for (const UdpSocket& socket : sockets_) drain_error_queue(socket, unreachable);
}

void SourceSockets::close() {
  decisions_.assign(kPorts, kOwn);
  sockets_.clear();
  opened_.clear();
}

std::uint8_t SourceSockets::open(std::uint16_t port) {
  if (sockets_.size() == kSocketsMax) return kOwn;
  set_port(config_.address, port);
  auto socket = UdpSocket::open(config_);
  if (!socket) return kOwn;
  opened_.push_back(socket->fd());
  sockets_.push_back(std::move(*socket));
  return static_cast<std::uint8_t>(sockets_.size());
}

}  // namespace nicless::wire
