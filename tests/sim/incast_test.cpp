// SPDX-License-Identifier: MIT
// Goal: many senders into one receiver get their work done at a fair part of its speed, though all their windows
// together are many times what its socket buffer holds: no livelock of losses and resends. Method: hosts with a
// connection each to one host, whose socket (a default buffer) they share; the virtual time until all that they send
// has arrived, compared with incast.snap to the last digit (snapshot.h).
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/side.h"
#include "tests/sim/snapshot.h"
#include "tests/sim/world.h"

namespace nicless::sim {
namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kLinkBytesPerSecond = 1'250'000'000;
constexpr std::size_t kTotalBytes = 32 * 1024 * 1024;
constexpr std::size_t kMessagesMax = 1000;  // of one sender
constexpr queue::Duration kLimit = std::chrono::seconds(1);

struct Scenario {
  std::size_t senders = 32;
  std::uint16_t path_mtu = 4096;
  std::size_t message_bytes = 65536;
};

wire::LinkConfig socket_of_default_size() {
  wire::LinkConfig config;
  config.latency = microseconds(10);
  config.bytes_per_second = kLinkBytesPerSecond;
  config.queue_bytes = 212'992;
  config.overhead_bytes = 1200;
  return config;
}

// Senders are hosts 1, 2, ...; host 0 receives.
class Incast {
 public:
  explicit Incast(const Scenario& scenario)
      : scenario_(scenario), world_(1, socket_of_default_size(), scenario.senders + 1, Topology::Funnels) {
    ConnectionConfig connection;
    connection.path_mtu = scenario.path_mtu;
    for (std::size_t i = 0; i < scenario.senders; ++i) {
      flows_.push_back(std::make_unique<Connected>(world_, i + 1, scenario.message_bytes));
      Connected& flow = *flows_.back();
      flow.from.connect(world_.now(), flow.to, connection, connection.a_psn, connection.b_psn);
      flow.to.connect(world_.now(), flow.from, connection, connection.b_psn, connection.a_psn);
    }
  }

  void run() {
    const auto start = world_.now();
    world_.run_until(
        [&] {
          for (auto& flow : flows_) turn(*flow);
          return std::all_of(flows_.begin(), flows_.end(), [&](auto& flow) { return flow->completed == messages(); });
        },
        kLimit);
    took_ = world_.now() - start;
    for (auto& flow : flows_) first_ended_ = std::min(first_ended_, flow->ended_at - start);
  }

  std::uint64_t kilobytes_per_second() const {
    return scenario_.senders * messages() * scenario_.message_bytes * 1'000'000 /
           static_cast<std::uint64_t>(took_.count());
  }
  std::string line() const {
    const double shortest = static_cast<double>(first_ended_.count()) / static_cast<double>(took_.count());
    char text[160];
    std::snprintf(text, sizeof text,
                  "%2zu senders  path MTU %4u  message %7zu  %8llu kB/s in all  first done after %3.0f%% of the time  "
                  "%7llu datagrams\n",
                  scenario_.senders, unsigned{scenario_.path_mtu}, scenario_.message_bytes,
                  static_cast<unsigned long long>(kilobytes_per_second()), shortest * 100,
                  static_cast<unsigned long long>(world_.datagrams_sent()));
    return text;
  }

 private:
  struct Connected {
    Connected(World& world, std::size_t host_index, std::size_t bytes)
        : host(host_index),
          from(world.engine(host_index), world.endpoint(host_index), {}, host_index * 2),
          to(world.engine(0), world.endpoint(0), {}, host_index * 2 + 1),
          out(from.make_buffer(bytes)),
          in(to.make_buffer(bytes)) {}
    const std::size_t host;
    Side from;
    Side to;
    Buffer out;
    Buffer in;
    std::size_t posted = 0;
    std::size_t completed = 0;
    queue::Instant ended_at{};
  };

  std::size_t messages() const {
    return std::clamp<std::size_t>(kTotalBytes / scenario_.senders / scenario_.message_bytes, 1, kMessagesMax);
  }

  // Keeps the send queue full and receives posted.
  void turn(Connected& flow) {
    const queue::Sge in = flow.in.sge(0, scenario_.message_bytes);
    const queue::Sge out = flow.out.sge(0, scenario_.message_bytes);
    while (flow.to.post_recv(0, {&in, 1})) {
    }
    flow.to.poll_recv();
    queue::Wqe wqe;
    wqe.sges = {&out, 1};
    const std::size_t posted_before = flow.posted;
    while (flow.posted < messages() && flow.from.post_send(world_.now(), wqe)) ++flow.posted;
    if (flow.posted != posted_before) world_.flush(flow.host);
    for (const Wc& wc : flow.from.poll_send()) {
      if (wc.status != queue::WcStatus::Success) world_.fail("a message failed: " + to_string(wc));
      if (++flow.completed == messages()) flow.ended_at = world_.now();
    }
  }

  const Scenario scenario_;
  World world_;
  std::vector<std::unique_ptr<Connected>> flows_;
  queue::Duration took_{};
  queue::Duration first_ended_ = queue::Duration::max();
};

TEST_CASE("32 senders into one receiver's default socket buffer do not livelock", "[rc][goodput][incast]") {
  std::string table;
  for (const std::size_t senders : {1, 4, 32}) {
    for (const std::uint16_t mtu : {1024, 4096}) {
      for (const std::size_t bytes : {64, 65536}) {
        Incast incast({senders, mtu, bytes});
        incast.run();
        table += incast.line();
      }
    }
  }
  CHECK(table == snapshot("incast.snap", table));
}

}  // namespace
}  // namespace nicless::sim
