// SPDX-License-Identifier: MIT
// Goal: a change of the retry or window rules shows its effect on throughput in review, and loss does not collapse it.
// Method: the virtual time that a fixed amount of data takes over a 10 Gbit/s link with a default socket buffer, by
// operation, loss and message size, over a few seeds, compared with goodput.snap to the last digit. A difference is a
// decision: NICLESS_UPDATE_SNAPSHOT=1 writes the file anew. In each line stands also what share is left of the goodput
// without loss.
#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

#include "tests/sim/pair.h"
#include "tests/sim/snapshot.h"

namespace nicless::sim {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kTotalBytes = 8 * 1024 * 1024;
constexpr std::size_t kMessagesMax = 4000;
constexpr std::uint64_t kLinkBytesPerSecond = 1'250'000'000;
constexpr std::size_t kSocketBufferBytes = 212'992;
constexpr std::size_t kSocketOverheadBytes = 1200;  // a datagram of 1 KiB counts as 2304 there
constexpr queue::Duration kLimit = std::chrono::seconds(3600);

constexpr std::uint64_t kSeeds = 4;
constexpr double kLosses[] = {0.0, 0.001, 0.01, 0.05};
constexpr std::size_t kMessageBytes[] = {64, 4096, 65536, 1048576};
struct Operation {
  const char* name;
  queue::SendOpcode opcode;
};
constexpr Operation kOperations[] = {
    {"send", queue::SendOpcode::Send}, {"write", queue::SendOpcode::Write}, {"read", queue::SendOpcode::Read}};

struct Measured {
  std::uint64_t bytes = 0;
  std::uint64_t nanoseconds = 0;
  std::uint64_t datagrams = 0;
  std::uint64_t kilobytes_per_second() const { return bytes * 1'000'000 / nanoseconds; }
};

PairConfig config_for(double loss, std::uint64_t seed) {
  PairConfig config;
  config.seed = seed;
  config.faults.latency = microseconds(10);
  config.faults.loss = loss;
  config.faults.bytes_per_second = kLinkBytesPerSecond;
  config.faults.queue_bytes = kSocketBufferBytes;
  config.faults.overhead_bytes = kSocketOverheadBytes;
  return config;
}

// The sender keeps its queue full, the receiver posts in time.
void measure(queue::SendOpcode opcode, const PairConfig& config, std::size_t message_bytes, Measured& sum) {
  Pair pair(config);
  Buffer here = pair.a.make_buffer(message_bytes);
  Buffer there = pair.b.make_buffer(message_bytes);
  const std::size_t messages = std::min(kMessagesMax, kTotalBytes / message_bytes);
  const queue::Sge here_sge = here.sge(0, message_bytes);
  const queue::Sge there_sge = there.sge(0, message_bytes);
  queue::Wqe wqe;
  wqe.opcode = opcode;
  wqe.remote_addr = there.address();
  wqe.rkey = there.rkey();
  wqe.sges = {&here_sge, 1};

  const auto start = pair.world.now();
  std::size_t posted = 0;
  std::size_t completed = 0;
  const auto turn = [&] {
    while (pair.b.post_recv(0, {&there_sge, 1})) {
    }
    while (posted < messages && pair.send_from_a(wqe)) ++posted;
    for (const Wc& wc : pair.a.poll_send()) {
      if (wc.status != queue::WcStatus::Success) pair.world.fail("a message failed: " + to_string(wc));
      ++completed;
    }
    pair.b.poll_recv();
    return completed == messages;
  };
  pair.world.run_until(turn, kLimit);
  sum.nanoseconds += static_cast<std::uint64_t>((pair.world.now() - start).count());
  sum.bytes += messages * message_bytes;
  sum.datagrams += pair.world.datagrams_sent();
}

Measured measure(queue::SendOpcode opcode, double loss, std::size_t message_bytes) {
  Measured sum;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) measure(opcode, config_for(loss, seed), message_bytes, sum);
  return sum;
}

std::string line(const char* name, double loss, std::size_t message_bytes, const Measured& measured,
                 std::uint64_t without_loss) {
  const double share = static_cast<double>(measured.kilobytes_per_second()) / static_cast<double>(without_loss) * 100;
  char text[160];
  std::snprintf(text, sizeof text, "%-5s  message %7zu  loss %4.1f%%  %8llu kB/s  %5.1f%%  %7llu datagrams\n", name,
                message_bytes, loss * 100, static_cast<unsigned long long>(measured.kilobytes_per_second()), share,
                static_cast<unsigned long long>(measured.datagrams));
  return text;
}

TEST_CASE("goodput by loss and message size is what the snapshot says", "[rc][goodput]") {
  std::string table;
  for (const Operation& operation : kOperations) {
    for (const std::size_t bytes : kMessageBytes) {
      std::uint64_t without_loss = 0;
      for (const double loss : kLosses) {
        const Measured measured = measure(operation.opcode, loss, bytes);
        if (loss == 0) without_loss = measured.kilobytes_per_second();
        table += line(operation.name, loss, bytes, measured, without_loss);
      }
    }
  }
  CHECK(table == snapshot("goodput.snap", table));
}

}  // namespace
}  // namespace nicless::sim
