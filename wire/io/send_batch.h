// SPDX-License-Identifier: MIT
// A batch of datagrams on their way into a socket: filled in place, sealed, grouped and handed to the kernel in one
// call. Neighbours of one size, with the same ends, leave as one segmented datagram (UDP_SEGMENT). Nothing is copied
// here: the kernel reads headers and payload where they are. Port-bound.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/io/socket_address.h"
#include "wire/io/source_sockets.h"
#include "wire/io/trace.h"
#include "wire/io/udp_socket.h"
#include "wire/packet/datagram.h"

namespace nicless::wire {

// A datagram that the kernel would not take: lost, as if the network had dropped it; the transport sends it again.
struct Refusal {
  int errno_value = 0;
  Endpoint to;
  std::size_t bytes = 0;
};

class SendBatch {
 public:
  static constexpr std::size_t kDatagramsMax = 64;  // also the kernel's limit of segments in one datagram

  SendBatch();

  bool is_full() const { return count_ == kDatagramsMax; }
  bool empty() const { return count_ == 0; }
  OutDatagram& slot() { return datagrams_[count_]; }  // to fill; it counts once kept
  void keep() { ++count_; }

  // Where a batch leaves: by the port's own socket; in strict RoCE v2 by that of each datagram's source port.
  struct Outlet {
    UdpSocket& own;
    SourceSockets* sources = nullptr;
  };
  // Sends all and empties the batch. Never blocks: what the kernel does not take at once is refused.
  void send(const Outlet& outlet, queue::Instant now, Trace* trace);
  // The same for datagrams that are sealed already, for IP identification 0: their bytes leave as they are, one by one.
  void send_sealed(const Outlet& outlet, queue::Instant now, Trace* trace);

  std::span<OutDatagram> datagrams() { return std::span(datagrams_).first(count_); }
  void clear() { count_ = 0; }

  std::optional<Refusal> take_refusal();  // the last one, since the last call
  // True if the socket reported an ICMP error on this occasion: the error queue holds it.
  bool take_error_hint();

 private:
  // datagrams_[first, first + count): one message for the kernel, in vectors_[first_vector, first_vector + vectors).
  struct Group {
    std::size_t first = 0;
    std::size_t count = 0;
    std::size_t first_vector = 0;
    std::size_t vectors = 0;
  };
  // The trailer of a segment and the header of the next, side by side: one vector instead of two, which the kernel
  // takes half a microsecond faster for each 64 KiB.
  struct Seam {
    static constexpr std::size_t kHeaderAt = 8;
    static_assert(kTrailerBytesMax <= kHeaderAt);
    std::array<std::byte, kHeaderAt + kHeaderBytesMax> bytes;
  };
  union Control {
    cmsghdr align;
    std::array<char, 128> bytes;
  };

  bool joins(const Group& group, const OutDatagram& next) const;
  void open_group(std::size_t index);
  void append(std::size_t index);
  std::span<const std::byte> join(std::size_t index);
  void write_message(const UdpSocket& socket, const Group& group, std::size_t index);
  std::size_t end_of_run(std::size_t first, const Outlet& outlet) const;
  void submit(const Outlet& outlet);
  void submit(std::size_t first, std::size_t end, UdpSocket& socket);
  void submit_all(const Outlet& outlet, queue::Instant now, Trace* trace);
  void send_singly(UdpSocket& socket, const Group& group);
  void refuse(const Group& group, int errno_value);

  std::vector<OutDatagram> datagrams_;
  std::size_t count_ = 0;
  std::vector<Group> groups_;
  std::vector<mmsghdr> messages_;
  std::vector<iovec> vectors_;
  std::vector<Seam> seams_;  // seams_[i] ends with the header of datagrams_[i]
  std::vector<SocketAddress> names_;
  std::vector<Control> controls_;
  std::optional<Refusal> refusal_;
  bool has_error_hint_ = false;
};

}  // namespace nicless::wire
