// SPDX-License-Identifier: MIT
// The sockets by which a port of strict RoCE v2 sends from the source ports that its queue pairs choose
// (wire/qp/source_port.h): opened when the first datagram wants one, up to a limit, and kept. Nothing is received by
// them but ICMP errors. Port-bound (docs/adr/0012).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "wire/io/udp_socket.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

class SourceSockets {
 public:
  static constexpr std::size_t kSocketsMax = 32;

  // own: what the port's own socket is bound to, address and port; the sockets here have the same address.
  explicit SourceSockets(const SocketConfig& own);

  // The port that a datagram leaves from which would leave from `wanted`: that one, or the own socket's where it is
  // taken by somebody else or the sockets here are at their limit. Decided once for each port.
  std::uint16_t choose(std::uint16_t wanted);
  // The socket behind a port that choose() gave.
  UdpSocket& find(std::uint16_t port, UdpSocket& own);

  // Empties the error queues (error_queue.h).
  void drain_errors(std::vector<Endpoint>& unreachable) const;
  // Descriptors that were opened since the last call: an ICMP error makes them ready.
  bool has_opened() const { return !opened_.empty(); }
  std::vector<int> take_opened() { return std::exchange(opened_, {}); }
  void close();

 private:
  static constexpr std::uint8_t kUndecided = 0;
  static constexpr std::uint8_t kOwn = 0xff;  // else an index into sockets_, from 1 on

  std::uint8_t open(std::uint16_t port);

  SocketConfig config_;
  const std::uint16_t own_port_;
  std::vector<std::uint8_t> decisions_;  // by port from kSourcePortFirst on
  std::vector<UdpSocket> sockets_;
  std::vector<int> opened_;
};

}  // namespace nicless::wire
