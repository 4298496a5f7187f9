// SPDX-License-Identifier: MIT
// The yardstick for bandwidth over TCP: one way, blocking send and recv of a chunk at a time, the ends placed by the
// scheduler (ends that block do better so). Socket buffers are TCP's own affair: it sizes them as it goes.
//
//   raw_tcp_stream [MEGABYTES [CHUNK_BYTES]]     prints mebibytes per second received
#include <cstdint>
#include <vector>

#include "tests/bench/loopback.h"

namespace nicless::bench {
namespace {

void receive_stream(int listener, std::size_t chunk_bytes) {
  const int fd = accept(listener, nullptr, nullptr);
  check(fd >= 0, "accept");
  std::vector<char> buffer(chunk_bytes);
  std::uint64_t taken = 0;
  double start = 0;
  for (;;) {
    const ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    check(got >= 0, "recv");
    if (got == 0) break;
    if (start == 0) start = now_seconds();
    taken += static_cast<std::uint64_t>(got);
  }
  std::printf("mebibytes_per_second %.1f\n", static_cast<double>(taken) / (now_seconds() - start) / (1 << 20));
}

void send_stream(int listener, std::uint64_t bytes, std::size_t chunk_bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(fd >= 0, "socket");
  connect_to(fd, listener);
  const std::vector<char> buffer(chunk_bytes);
  for (std::uint64_t sent = 0; sent < bytes;) {
    const ssize_t here = send(fd, buffer.data(), buffer.size(), 0);
    check(here >= 0, "send");
    sent += static_cast<std::uint64_t>(here);
  }
  close(fd);
}

void run(std::uint64_t bytes, std::size_t chunk_bytes) {
  const int listener = bound_socket(SOCK_STREAM);
  check(listen(listener, 1) == 0, "listen");
  run_both(
      Placement::Scheduler, [&] { receive_stream(listener, chunk_bytes); },
      [&] { send_stream(listener, bytes, chunk_bytes); });
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "raw_tcp_stream [MEGABYTES [CHUNK_BYTES]]");
  const int megabytes = arguments.number(1000);
  const int chunk_bytes = arguments.number(65536);
  arguments.expect_no_more();
  nicless::bench::run(static_cast<std::uint64_t>(megabytes) << 20, static_cast<std::size_t>(chunk_bytes));
}
