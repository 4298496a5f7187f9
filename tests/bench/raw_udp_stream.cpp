// SPDX-License-Identifier: MIT
// The yardstick for bandwidth and for message rate over UDP: one way, between connected IPv4 sockets, each end on a
// core of its own and spinning on a non-blocking recv; datagrams of the size that RC uses.
//
//   raw_udp_stream [OPTION...] [MEGABYTES [DATAGRAM_BYTES]]
//
// prints mebibytes and datagrams per second, as received. 4112 bytes is a full RC packet at path MTU 4096: BTH 12,
// payload 4096, ICRC 4. Without options up to 64 KiB leave as one super-packet (UDP_SEGMENT) and arrive so (UDP_GRO).
//
//   --messages         datagrams one by one, 64 to a sendmmsg, up to 64 from a recvmmsg; neither UDP_SEGMENT nor
//   UDP_GRO
//   --default-buffers  socket buffers are left alone
//
// A window keeps the receiver's socket buffer from overflowing (loopback drops what does not fit): the receiver reports
// how much it has taken, and the sender stays within 256 KiB of that, or within a third of a smaller buffer; the kernel
// counts a datagram with its overhead, which is ten times as much at 80 bytes. With more in flight the bytes fall out
// of the processor's cache before they are read, and the yardstick is half as long.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tests/bench/loopback.h"
#include "tests/bench/udp_options.h"

namespace nicless::bench {
namespace {

constexpr const char* kUsage = "raw_udp_stream [--messages] [--default-buffers] [MEGABYTES [DATAGRAM_BYTES]]";
constexpr std::size_t kLargestSuperPacket = 65507;
constexpr std::uint64_t kWindowMax = 256 * 1024;
constexpr std::size_t kBatch = 64;
constexpr std::size_t kOverheadBytes = 768;  // of a small datagram in a socket buffer
constexpr std::uint64_t kEndMark = ~std::uint64_t{0};

struct Config {
  bool are_messages = false;  // datagrams one by one
  bool keeps_buffers = false;
  std::uint64_t bytes = 0;
  std::size_t datagram_bytes = 0;
};

// What one call sends.
std::size_t step_of(const Config& config) {
  if (config.are_messages) return kBatch * config.datagram_bytes;
  return kLargestSuperPacket / config.datagram_bytes * config.datagram_bytes;
}

// Messages that point into one buffer: all sends read the same bytes, each receive has its own.
class Batch {
 public:
  Batch(std::size_t datagram_bytes, std::size_t distance) : bytes_((kBatch - 1) * distance + datagram_bytes) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      vectors_[i] = {bytes_.data() + i * distance, datagram_bytes};
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }
  mmsghdr* data() { return messages_.data(); }
  std::size_t received(int count) const {
    std::size_t bytes = 0;
    for (int i = 0; i < count; ++i) bytes += messages_[static_cast<std::size_t>(i)].msg_len;
    return bytes;
  }

 private:
  std::vector<char> bytes_;
  std::array<iovec, kBatch> vectors_{};
  std::array<mmsghdr, kBatch> messages_{};
};

class Receiver {
 public:
  Receiver(int fd, const Config& config, std::uint64_t report_every)
      : fd_(fd),
        config_(config),
        report_every_(report_every),
        buffer_(65536),
        batch_(std::max(config.datagram_bytes, sizeof kEndMark), 4096) {}

  void run() {
    std::uint64_t taken = 0;
    std::uint64_t reported = 0;
    double start = 0;
    double last = 0;
    for (;;) {
      const std::size_t got = take();
      if (got == sizeof kEndMark) break;
      last = now_seconds();
      // What the first call brought was under way before the clock started.
      if (start == 0) {
        start = last;
        uncounted_ = got;
      }
      taken += got;
      if (taken - reported < report_every_ && taken < config_.bytes) continue;
      reported = taken;
      check(send(fd_, &taken, sizeof taken, 0) >= 0, "send");
    }
    const double bytes_per_second = static_cast<double>(taken - uncounted_) / (last - start);
    std::printf("mebibytes_per_second %.1f\n", bytes_per_second / (1 << 20));
    std::printf("datagrams_per_second %.0f\n", bytes_per_second / static_cast<double>(config_.datagram_bytes));
  }

 private:
  std::size_t take() {
    if (!config_.are_messages) return receive_spinning(fd_, buffer_.data(), buffer_.size());
    return batch_.received(
        wait_for(false, [this] { return recvmmsg(fd_, batch_.data(), kBatch, MSG_DONTWAIT, nullptr); }));
  }

  const int fd_;
  const Config& config_;
  const std::uint64_t report_every_;
  std::vector<char> buffer_;
  Batch batch_;
  std::uint64_t uncounted_ = 0;
};

class Sender {
 public:
  Sender(int fd, const Config& config)
      : fd_(fd), config_(config), super_packet_(step_of(config)), batch_(config.datagram_bytes, 0) {
    if (!config.are_messages) set_option(fd, SOL_UDP, UDP_SEGMENT, static_cast<int>(config.datagram_bytes));
  }

  void run(std::uint64_t window) {
    const std::size_t step = step_of(config_);
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    while (taken < config_.bytes) {
      while (sent < config_.bytes && (sent == taken || sent - taken + step <= window)) sent += push();
      receive_spinning(fd_, &taken, sizeof taken);
    }
    check(send(fd_, &kEndMark, sizeof kEndMark, 0) >= 0, "send");
  }

 private:
  std::size_t push() {
    if (!config_.are_messages) {
      check(send(fd_, super_packet_.data(), super_packet_.size(), 0) >= 0, "send");
      return super_packet_.size();
    }
    check(sendmmsg(fd_, batch_.data(), kBatch, 0) == static_cast<int>(kBatch), "sendmmsg");
    return kBatch * config_.datagram_bytes;
  }

  const int fd_;
  const Config& config_;
  const std::vector<char> super_packet_;
  Batch batch_;
};

std::uint64_t window_of(int fd, const Config& config) {
  const auto third = static_cast<std::uint64_t>(receive_buffer_bytes(fd)) / 3;
  if (!config.are_messages) return std::min(third, kWindowMax);
  return third * config.datagram_bytes / (config.datagram_bytes + kOverheadBytes);
}

// A quarter of the window, but never so much that the sender waits for a report that is not due.
std::uint64_t report_every(std::uint64_t window, const Config& config) {
  const std::size_t step = step_of(config);
  return window <= step ? 1 : std::min(window / 4, window - step);
}

void run(const Config& config) {
  const int sending = bound_socket(SOCK_DGRAM);
  const int receiving = bound_socket(SOCK_DGRAM);
  connect_to(sending, receiving);
  connect_to(receiving, sending);
  if (!config.are_messages) set_option(receiving, SOL_UDP, UDP_GRO, 1);
  if (!config.keeps_buffers) {
    raise_buffers(sending);
    raise_buffers(receiving);
  }
  const std::uint64_t window = window_of(receiving, config);
  run_both(
      Placement::OneEachCore, [&] { Receiver(receiving, config, report_every(window, config)).run(); },
      [&] { Sender(sending, config).run(window); });
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, nicless::bench::kUsage);
  nicless::bench::Config config;
  config.are_messages = arguments.take("--messages");
  config.keeps_buffers = arguments.take("--default-buffers");
  config.bytes = static_cast<std::uint64_t>(arguments.number(1000)) << 20;
  config.datagram_bytes = static_cast<std::size_t>(arguments.number(4112));
  arguments.expect_no_more();
  nicless::bench::run(config);
}
