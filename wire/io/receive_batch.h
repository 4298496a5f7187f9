// SPDX-License-Identifier: MIT
// A batch of datagrams out of a socket, in one call. Several that the kernel has joined (UDP_GRO) are taken apart
// again. The bytes stay where they were received until the next receive(). Port-bound.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "wire/io/socket_address.h"
#include "wire/io/udp_socket.h"
#include "wire/packet/datagram.h"

namespace nicless::wire {

class ReceiveBatch {
 public:
  static constexpr std::size_t kMessagesMax = 8;
  static constexpr std::size_t kMessageBytes = 65536;  // more than UDP can carry, joined or not

  ReceiveBatch();

  // How many messages came; 0 when none is waiting; or a negative errno: an ICMP error, which the error queue explains.
  int receive(const UdpSocket& socket);

  // The next datagram of what came; false when there is none left.
  bool next(InDatagram& out);

 private:
  union Control {
    cmsghdr align;
    std::array<char, 256> bytes;
  };

  int receive_one(int fd);
  void prepare(std::size_t count);
  bool open_next();
  void open_message(const mmsghdr& message, std::size_t index);
  Gid local_address(msghdr& message) const;
  static IpOptions ip_options(msghdr& message);

  std::unique_ptr<std::byte[]> bytes_;  // kMessagesMax times kMessageBytes, never initialised: touched as needed
  std::array<mmsghdr, kMessagesMax> messages_{};
  std::array<iovec, kMessagesMax> vectors_{};
  std::array<SocketAddress, kMessagesMax> names_;
  std::array<Control, kMessagesMax> controls_;

  std::uint16_t local_port_ = 0;
  bool has_ip_options_ = false;
  bool has_backlog_ = false;  // the last call found something: there may be more at once
  std::size_t message_count_ = 0;
  std::size_t next_message_ = 0;
  // The message that next() is in: what is left of it, and its segment size.
  InDatagram current_;
  std::span<const std::byte> rest_;
  std::size_t segment_bytes_ = 0;
};

}  // namespace nicless::wire
