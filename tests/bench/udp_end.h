// SPDX-License-Identifier: MIT
// One end of a datagram conversation on loopback, in the plainest form (a connected IPv4 socket, send and recv) or with
// any of what the sockets of nicless have on top (wire/io/udp_socket, send_batch, receive_batch). So the price of each
// piece can be measured without nicless. Thread-compatible.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace nicless::bench {

struct UdpShape {
  bool is_blocking = false;      // recv sleeps; else it spins, and yields now and then
  bool is_unconnected = false;   // each datagram names where it goes
  bool is_dual_stack = false;    // AF_INET6, wildcard, IPv4-mapped addresses; never connected
  bool has_packet_info = false;  // IP_PKTINFO both ways: as control message with each datagram
  bool has_gro = false;          // UDP_GRO on the receiving side
  bool has_batches = false;      // sendmmsg of three pieces a datagram (header, payload, ICRC), recvmmsg of up to eight
  bool keeps_buffers = false;    // SO_RCVBUF stays what the system gives by default
};

class UdpEnd {
 public:
  explicit UdpEnd(const UdpShape& shape);
  ~UdpEnd();
  UdpEnd(const UdpEnd&) = delete;
  UdpEnd& operator=(const UdpEnd&) = delete;

  void aim_at(const UdpEnd& peer);

  // Datagrams of these sizes, at most kBatchMax; with has_batches in one call.
  void send(std::span<const std::size_t> sizes);
  // Waits until something is there, and returns the sizes of what came, at least one; valid until the next call.
  std::span<const std::size_t> receive();

  int fd() const { return fd_; }

  static constexpr std::size_t kBatchMax = 8;
  static constexpr std::size_t kDatagramBytesMax = 65536;

 private:
  union Control {
    cmsghdr align;
    std::array<char, 256> bytes;
  };

  int transmit(std::size_t count);
  int take();
  void fill_outgoing(std::size_t index, std::size_t bytes);
  void fill_incoming(std::size_t index);

  UdpShape shape_;
  int fd_ = -1;
  sockaddr_storage peer_{};
  socklen_t peer_bytes_ = 0;
  std::vector<char> in_;
  std::vector<char> out_;
  std::array<mmsghdr, kBatchMax> in_messages_{};
  std::array<mmsghdr, kBatchMax> out_messages_{};
  std::array<iovec, kBatchMax> in_vectors_{};
  std::array<std::array<iovec, 3>, kBatchMax> out_vectors_{};
  std::array<sockaddr_storage, kBatchMax> names_{};
  std::array<Control, kBatchMax> in_controls_{};
  std::array<Control, kBatchMax> out_controls_{};
  std::array<std::size_t, kBatchMax> sizes_{};
};

}  // namespace nicless::bench
