// SPDX-License-Identifier: MIT
// The yardstick for bandwidth over UDP: one way, UDP_SEGMENT out and UDP_GRO in, datagrams of the size that RC uses.
//
//   raw_udp_stream [MEGABYTES [DATAGRAM_BYTES]]     prints mebibytes per second of datagram payload received
//
// 4112 bytes is a full RC packet at path MTU 4096: BTH 12, payload 4096, ICRC 4. Both ends spin. A window keeps the
// receiver's socket buffer from overflowing (loopback drops what does not fit): the receiver reports how much it has
// taken, and the sender stays within a third of the buffer (which counts overhead too) of that.
#include <cstdint>
#include <vector>

#include "tests/bench/loopback.h"
#include "tests/bench/udp_options.h"

namespace nicless::bench {
namespace {

constexpr std::size_t kLargestSuperPacket = 65507;
constexpr int kBufferBytes = 4 << 20;  // asked for; the system grants net.core.rmem_max
constexpr std::uint64_t kEndMark = ~std::uint64_t{0};

void receive_stream(int fd) {
  std::vector<char> buffer(65536);
  std::uint64_t taken = 0;
  double start = 0;
  double last = 0;
  for (;;) {
    const std::size_t got = receive_spinning(fd, buffer.data(), buffer.size());
    if (got == sizeof kEndMark) break;
    last = now_seconds();
    if (start == 0) start = last;
    taken += got;
    check(send(fd, &taken, sizeof taken, 0) >= 0, "send");
  }
  std::printf("mebibytes_per_second %.1f\n", static_cast<double>(taken) / (last - start) / (1 << 20));
}

void send_stream(int fd, std::uint64_t bytes, std::size_t datagram_bytes, std::uint64_t window) {
  const std::vector<char> super_packet(kLargestSuperPacket / datagram_bytes * datagram_bytes);
  set_option(fd, SOL_UDP, UDP_SEGMENT, static_cast<int>(datagram_bytes));
  std::uint64_t sent = 0;
  std::uint64_t taken = 0;
  while (taken < bytes) {
    while (sent < bytes && (sent == taken || sent - taken + super_packet.size() <= window)) {
      check(send(fd, super_packet.data(), super_packet.size(), 0) >= 0, "send");
      sent += super_packet.size();
    }
    receive_spinning(fd, &taken, sizeof taken);
  }
  check(send(fd, &kEndMark, sizeof kEndMark, 0) >= 0, "send");
}

void run(std::uint64_t bytes, std::size_t datagram_bytes) {
  const int sending = bound_socket(SOCK_DGRAM);
  const int receiving = bound_socket(SOCK_DGRAM);
  connect_to(sending, receiving);
  connect_to(receiving, sending);
  set_option(receiving, SOL_UDP, UDP_GRO, 1);
  set_option(receiving, SOL_SOCKET, SO_RCVBUF, kBufferBytes);
  int granted = 0;
  socklen_t size = sizeof granted;
  check(getsockopt(receiving, SOL_SOCKET, SO_RCVBUF, &granted, &size) == 0, "getsockopt");
  const std::uint64_t window = static_cast<std::uint64_t>(granted) / 3;
  run_both(
      Placement::OneEachCore, [&] { receive_stream(receiving); },
      [&] { send_stream(sending, bytes, datagram_bytes, window); });
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "raw_udp_stream [MEGABYTES [DATAGRAM_BYTES]]");
  const int megabytes = arguments.number(1000);
  const int datagram_bytes = arguments.number(4112);
  arguments.expect_no_more();
  nicless::bench::run(static_cast<std::uint64_t>(megabytes) << 20, static_cast<std::size_t>(datagram_bytes));
}
