// SPDX-License-Identifier: MIT
// A UDP socket set up for RoCE v2: non-blocking, close-on-exec, don't-fragment, packet info on, ICMP errors wanted,
// buffers as large as the system allows. Port-bound (docs/THREADS.md); opening and closing from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "queue/result.h"
#include "wire/io/socket_address.h"

namespace nicless::wire {

struct SocketConfig {
  SocketAddress address{};  // AF_INET, or AF_INET6 (dual stack if it is a wildcard and not v6_only); port 0: any
  bool reuse_address = false;
  bool v6_only = false;
  // What each buffer is asked to hold, more than any default limit: the kernel gives what net.core.rmem_max and
  // wmem_max allow. 0: as the system makes them.
  int buffer_bytes = 8 << 20;
  bool sends_only = false;  // what arrives is dropped by the kernel; ICMP errors are not
};

// The wildcard address with an ephemeral port: dual stack, or plain IPv4 where the kernel has no IPv6.
SocketConfig any_address();

class UdpSocket {
 public:
  // The error is bind(2)'s: EADDRINUSE, EACCES, EADDRNOTAVAIL; or EMFILE, ENFILE, ENOMEM.
  static queue::Result<UdpSocket> open(const SocketConfig& config);

  UdpSocket() = default;
  ~UdpSocket() { close(); }
  UdpSocket(UdpSocket&& other) noexcept { *this = static_cast<UdpSocket&&>(other); }
  UdpSocket& operator=(UdpSocket&& other) noexcept;
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  void close();
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int family() const { return family_; }
  std::uint16_t port() const { return port_; }
  std::size_t receive_buffer_bytes() const;  // as the kernel counts: the memory that datagrams take, not their bytes

  // From now on every datagram comes with its traffic class and hop limit: for queue pairs that show them to programs.
  // Costs two control messages each.
  void tell_ip_options();
  bool tells_ip_options() const { return tells_ip_options_; }

  // Whether several datagrams of one size may leave as one (UDP_SEGMENT). Some devices turn out not to.
  bool can_segment() const { return can_segment_; }
  void stop_segmenting() { can_segment_ = false; }

 private:
  int fd_ = -1;
  int family_ = 0;
  std::uint16_t port_ = 0;
  bool can_segment_ = false;
  bool tells_ip_options_ = false;
};

// For a forked child, which has copies of its parent's sockets: closes them, so that the parent's ports are the
// parent's alone. Async-signal-safe.
void close_inherited_sockets();

}  // namespace nicless::wire
