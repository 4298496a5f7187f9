// SPDX-License-Identifier: MIT
// The yardstick for latency: two processes, one datagram to and fro, both spinning on a non-blocking recv.
//
//   raw_udp_pingpong [BYTES [ITERATIONS]]     prints the median half round trip in microseconds
//
// 80 bytes is what a 64-byte SEND takes as a datagram: BTH 12, payload 64, ICRC 4. Like the RDMA programs at the
// default settings of nicless, a side that has found nothing for a long while yields the processor (more ends than
// cores).
#include <sched.h>

#include <algorithm>
#include <vector>

#include "tests/bench/loopback.h"

namespace nicless::bench {
namespace {

void transmit(int fd, const std::vector<char>& buffer) {
  check(send(fd, buffer.data(), buffer.size(), 0) >= 0, "send");
}

void run(int bytes, int iterations) {
  const int ours = bound_socket(SOCK_DGRAM);
  const int theirs = bound_socket(SOCK_DGRAM);
  connect_to(ours, theirs);
  connect_to(theirs, ours);
  std::vector<char> buffer(static_cast<std::size_t>(bytes));
  run_both(
      Placement::OneEachCore,
      [&] {
        for (int i = 0; i < iterations; ++i) {
          receive_spinning(theirs, buffer.data(), buffer.size());
          transmit(theirs, buffer);
        }
      },
      [&] {
        std::vector<double> trips;
        trips.reserve(static_cast<std::size_t>(iterations));
        for (int i = 0; i < iterations; ++i) {
          const double start = now_seconds();
          transmit(ours, buffer);
          receive_spinning(ours, buffer.data(), buffer.size());
          trips.push_back(now_seconds() - start);
        }
        const auto middle = trips.begin() + iterations / 2;
        std::nth_element(trips.begin(), middle, trips.end());
        std::printf("half_round_trip_us %.3f\n", *middle * 1e6 / 2);
      });
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  using nicless::bench::argument;
  nicless::bench::run(argument(argc, argv, 1, 80), argument(argc, argv, 2, 20000));
}
