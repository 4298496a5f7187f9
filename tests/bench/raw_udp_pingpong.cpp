// SPDX-License-Identifier: MIT
// The yardstick for latency: two processes, one datagram to and fro; the median half round trip in microseconds.
//
//   raw_udp_pingpong [OPTION...] [BYTES [ITERATIONS]]
//
// 80 bytes is what a 64-byte SEND takes as a datagram: BTH 12, payload 64, ICRC 4. Without options: connected IPv4
// sockets, send and a non-blocking recv that spins, each end on a core of its own. Like the RDMA programs at the
// default settings of nicless, a side that has found nothing for a long while yields the processor (more ends than
// cores).
//
//   --blocking         recv sleeps: the peer of programs that wait for events
//   --one-core         both ends on the same core
//   --unpinned         the scheduler places the ends
//   --default-buffers  SO_RCVBUF is left alone
//
// The floor of nicless, what the kernel takes for what nicless asks of it; all at once, or one by one:
//
//   --floor            the five that follow
//   --unconnected      each datagram names its destination
//   --dual-stack       an IPv6 wildcard socket, IPv4-mapped addresses
//   --packet-info      IP_PKTINFO with each datagram, out and in
//   --gro              UDP_GRO
//   --batches          sendmmsg of header, payload and ICRC in three pieces; recvmmsg of up to eight, with addresses

//   and one more datagram in each direction for each message, of 20 bytes (BTH, AETH, ICRC):
//
//   --acks             sent before the message that goes back
//   --late-acks        sent after it, while the answer is awaited
//   --joined-acks      sent after it in the same call (with --batches)
#include <span>

#include "tests/bench/loopback.h"
#include "tests/bench/udp_end.h"

namespace nicless::bench {
namespace {

constexpr const char* kUsage =
    "raw_udp_pingpong [--blocking] [--one-core | --unpinned] [--default-buffers] [--floor] [--unconnected]\n"
    "       [--dual-stack] [--packet-info] [--gro] [--batches] [--acks | --late-acks | --joined-acks] [BYTES "
    "[ITERATIONS]]";
constexpr std::size_t kAckBytes = 20;

enum class Acks { None, Before, After, Joined };

struct Config {
  UdpShape shape;
  Acks acks = Acks::None;
  Placement placement = Placement::OneEachCore;
  std::size_t message_bytes = 80;
  int iterations = 20000;
};

class Player {
 public:
  Player(UdpEnd& end, const Config& config) : end_(end), config_(config) {}

  // A message out, and the ACK that is due with or after it.
  void send() {
    const std::size_t sizes[] = {config_.message_bytes, kAckBytes};
    const bool is_due = owes_ack_ && config_.acks != Acks::Before;
    const bool joins = is_due && config_.acks == Acks::Joined;
    end_.send(std::span(sizes).first(joins ? 2 : 1));
    if (is_due && !joins) send_ack();
    owes_ack_ = false;
  }
  // Waits for a message; ACKs are taken on the way.
  void receive() {
    for (bool has_message = false; !has_message;) {
      for (const std::size_t bytes : end_.receive()) has_message |= bytes == config_.message_bytes;
    }
    owes_ack_ = config_.acks != Acks::None;
    if (config_.acks == Acks::Before) send_ack();
  }

 private:
  void send_ack() { end_.send(std::span(&kAckBytes, 1)); }

  UdpEnd& end_;
  const Config& config_;
  bool owes_ack_ = false;
};

void run(const Config& config) {
  UdpEnd ours(config.shape);
  UdpEnd theirs(config.shape);
  ours.aim_at(theirs);
  theirs.aim_at(ours);
  run_both(
      config.placement,
      [&] {
        Player player(theirs, config);
        for (int i = 0; i < config.iterations; ++i) {
          player.receive();
          player.send();
        }
      },
      [&] {
        Player player(ours, config);
        const double median = median_half_round_trip(config.iterations, [&] {
          player.send();
          player.receive();
        });
        std::printf("half_round_trip_us %.3f\n", median * 1e6);
      });
}

Config parse(int argc, char** argv) {
  Arguments arguments(argc, argv, kUsage);
  Config config;
  UdpShape& shape = config.shape;
  const bool is_floor = arguments.take("--floor");
  shape.is_blocking = arguments.take("--blocking");
  shape.keeps_buffers = arguments.take("--default-buffers");
  shape.is_unconnected = arguments.take("--unconnected") || is_floor;
  shape.is_dual_stack = arguments.take("--dual-stack") || is_floor;
  shape.has_packet_info = arguments.take("--packet-info") || is_floor;
  shape.has_gro = arguments.take("--gro") || is_floor;
  shape.has_batches = arguments.take("--batches") || is_floor;
  if (arguments.take("--acks")) config.acks = Acks::Before;
  if (arguments.take("--late-acks")) config.acks = Acks::After;
  if (arguments.take("--joined-acks")) config.acks = Acks::Joined;
  if (arguments.take("--one-core")) config.placement = Placement::SameCore;
  if (arguments.take("--unpinned")) config.placement = Placement::Scheduler;
  config.message_bytes = static_cast<std::size_t>(arguments.number(80));
  config.iterations = arguments.number(20000);
  arguments.expect_no_more();
  return config;
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::run(nicless::bench::parse(argc, argv));
}
