// SPDX-License-Identifier: MIT
// The simulated network: engines joined by seeded links, in virtual time. Everything that happens follows from the seed
// and the calls made, so a failure is replayed by its seed. Does not depend on the test framework: the fuzzer uses it
// too. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "queue/types.h"
#include "wire/engine.h"
#include "wire/link.h"

namespace nicless::sim {

// What a test or the oracle found wrong: the sentence and the seed. As it unwinds, the World prints the last packets.
class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// 10.0.0.N as a GID.
wire::Gid address_of(std::uint8_t n);

// LinkEach: every direction between two hosts is a link of its own. Funnels: all that goes to one host shares one link,
// and with it its speed and its queue, as it shares the host's socket buffer.
enum class Topology { LinkEach, Funnels };

class World {
 public:
  // Hosts 10.0.0.1, 10.0.0.2, ... with one engine each; every link has these faults and a seed derived from `seed`.
  World(std::uint64_t seed, const wire::LinkConfig& faults, std::size_t host_count = 2,
        Topology topology = Topology::LinkEach);
  ~World();  // prints trace and seed to stderr when an exception is on its way: a test is failing
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  std::uint64_t seed() const { return seed_; }
  queue::Instant now() const { return now_; }
  wire::Engine& engine(std::size_t host) { return *hosts_[host].engine; }
  wire::Endpoint endpoint(std::size_t host) const { return hosts_[host].endpoint; }
  wire::Link& link(std::size_t from, std::size_t to) {
    return *links_[topology_ == Topology::Funnels ? to : to * hosts_.size() + from];
  }

  // Puts what an engine has to send on its links: call it after every call into the engine.
  void flush(std::size_t host);
  // A datagram from nowhere: what `host` receives now, with a source address as given.
  void inject(std::size_t host, const wire::Endpoint& from, std::vector<std::byte> bytes);

  // Jumps to the next arrival or deadline and lets the engines react; false when nothing will ever happen.
  bool step();
  // Steps until nothing is left to happen. A world that does not rest within `limit` of virtual time is a Failure.
  void run_until_idle(queue::Duration limit);
  // Steps until `done` holds; a Failure if it does not within `limit`, or if nothing is left to happen before.
  void run_until(const std::function<bool()>& done, queue::Duration limit);
  // Everything that happens within `time`, and then the clock stands at its end.
  void run_for(queue::Duration time);

  [[noreturn]] void fail(const std::string& why) const;
  std::string trace() const;  // the last packets sent and received, one line each
  std::uint64_t datagrams_sent() const { return datagrams_sent_; }

 private:
  struct Host {
    wire::Endpoint endpoint;
    std::unique_ptr<wire::Engine> engine;
  };
  struct TraceEntry {
    queue::Instant when;
    char direction;  // '>' sent, '<' received, '!' injected
    wire::LinkDatagram datagram;
  };
  std::optional<queue::Instant> next_event() const;
  void advance(queue::Instant to);
  void deliver_arrivals(std::size_t host);
  std::span<const std::unique_ptr<wire::Link>> links_to(std::size_t host) const;
  void remember(char direction, const wire::LinkDatagram& datagram);

  const std::uint64_t seed_;
  const Topology topology_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<wire::Link>> links_;  // by where they lead to
  queue::Instant now_{std::chrono::seconds(1)};
  std::deque<TraceEntry> trace_;
  std::uint64_t datagrams_sent_ = 0;
  std::uint64_t steps_at_this_instant_ = 0;
  const int exceptions_at_start_;
};

}  // namespace nicless::sim
