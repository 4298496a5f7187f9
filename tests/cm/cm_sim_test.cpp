// SPDX-License-Identifier: MIT
// Goal: whatever the network, the programs and dying processes do, each id hears a possible story, each thing once, and
// in the end both ends of a connection agree that it stands, or neither believes it. Method: two or three processes
// that connect to one another in virtual time, over links that lose, double and reorder; programs that accept, refuse,
// think, leave, close their listeners and die at random; seeds (tests/cm/seeds.txt runs for ever) and an oracle.
#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>

#include "tests/cm/network.h"
#include "tests/cm/pair.h"
#include "tests/sim/seeds.h"

namespace nicless::cm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kSeedsFile = TEST_DATA_DIR "/cm/seeds.txt";
constexpr int kConnections = 24;
constexpr seconds kConnectWithin(120);
// The longest that one end may wait for another: sixteen tries 4.8 s apart, after an MRA of 69 s.
constexpr seconds kSettleWithin(400);

NetworkConfig config_of(std::uint64_t seed) {
  queue::Rng rng(seed);
  NetworkConfig config;
  config.hosts = 2 + rng.below(2);
  config.is_strict = rng.chance(0.5);
  config.backlog = 1 + rng.below(6);
  config.faults = {.seed = seed,
                   .latency = milliseconds(1),
                   .jitter = milliseconds(rng.below(50)),
                   .loss = rng.below(5) * 0.1,
                   .duplicate = rng.below(4) * 0.1,
                   .reorder = rng.below(4) * 0.1,
                   .reorder_delay = milliseconds(rng.below(3000))};
  return config;
}

class Run {
 public:
  explicit Run(std::uint64_t seed)
      : seed_(seed), rng_(seed + 77), data_rng_(seed + 78), network_(config_of(seed)), config_(config_of(seed)) {
    network_.on_request = [this](Id& id) { asked(id); };
    network_.on_event = [this](Id& id, const ConnectionEvent& event) { told(id, event); };
    may_die_ = rng_.chance(0.5);
  }

  // What was heard, reasons of refusals included.
  const std::set<std::string>& run() {
    for (int i = 0; i < kConnections; ++i) plan(kConnectWithin, [this] { connect_somewhere(); });
    if (may_die_) {
      // Early, too: while there are connections with the numbers with which the next process begins.
      for (const seconds within : {seconds(15), seconds(30), kConnectWithin}) plan(within, [this] { die_somewhere(); });
    }
    if (rng_.chance(0.3)) plan(kConnectWithin, [this] { cut_off_somewhere(); });
    for (std::uint32_t i = rng_.below(6); i > 0; --i) plan(kConnectWithin, [this] { stop_listening_somewhere(); });
    for (int i = 0; i < kConnections; ++i) {
      const milliseconds when(data_rng_.below(static_cast<std::uint32_t>(kConnectWithin / milliseconds(1))));
      network_.at(network_.now + when, [this] { send_data_everywhere(); });
    }
    network_.run_until(network_.now + kConnectWithin + kSettleWithin);
    network_.heal();
    network_.run_until(network_.now + kSettleWithin);
    check_agreement();
    tear_down();
    return heard_;
  }

 private:
  // What happens "some time": mostly at once, sometimes after a while, seldom after an age.
  queue::Duration some_time() {
    if (rng_.chance(0.6)) return milliseconds(0);
    return milliseconds(rng_.chance(0.9) ? rng_.below(5000) : rng_.below(100000));
  }
  void plan(queue::Duration within, const std::function<void()>& what) {
    network_.at(network_.now + milliseconds(rng_.below(static_cast<std::uint32_t>(within / milliseconds(1)))), what);
  }
  // The program of an id does something later, if the id is still there.
  void later(Id& id, const std::function<void(Id&)>& what) {
    network_.at(network_.now + some_time(), [&id, what] {
      if (id.entry != nullptr) what(id);
    });
  }

  void connect_somewhere() {
    const std::size_t from = rng_.below(static_cast<std::uint32_t>(config_.hosts));
    const std::size_t to = rng_.below(static_cast<std::uint32_t>(config_.hosts));
    if (!network_.is_alive(from)) return;
    Id& id = network_.connect(from, to);
    if (rng_.chance(0.1)) later(id, [this](Id& each) { network_.destroy(each); });
  }

  void die_somewhere() {
    const std::size_t host = rng_.below(static_cast<std::uint32_t>(config_.hosts));
    if (!network_.is_alive(host)) return;
    if (rng_.chance(0.5)) {
      network_.exit(host);
    } else {
      network_.kill(host);
    }
    network_.at(network_.now + some_time(), [this, host] {
      network_.start(host);
      for (int i = 0; i < 3; ++i) plan(milliseconds(500), [this] { connect_somewhere(); });
    });
  }

  void send_data_everywhere() {
    for (Id& id : network_.ids())
      if (id.is_established() && data_rng_.chance(0.5)) network_.send_data(id);
  }

  void stop_listening_somewhere() {
    const std::size_t host = rng_.below(static_cast<std::uint32_t>(config_.hosts));
    if (!network_.is_alive(host)) return;
    network_.stop_listening(host);
    network_.at(network_.now + some_time(), [this, host] {
      if (network_.is_alive(host)) network_.listen(host);
    });
  }

  void cut_off_somewhere() {
    network_.cut(rng_.below(static_cast<std::uint32_t>(config_.hosts)), seconds(rng_.below(200)));
  }

  void asked(Id& id) {
    later(id, [this](Id& each) {
      if (rng_.chance(0.8)) return network_.accept(each);
      if (rng_.chance(0.5)) return network_.reject(each);
      network_.destroy(each);
    });
  }

  void told(Id& id, const ConnectionEvent& event) {
    const auto* rejected = std::get_if<Rejected>(&event);
    heard_.insert(name_of(event) +
                  (rejected == nullptr ? "" : " " + std::to_string(static_cast<int>(rejected->reason))));
    if (id.is_impossible) fail(id.name + " hears " + name_of(event) + ", which may not follow");
    if (std::holds_alternative<Replied>(event)) {
      later(id, [this](Id& each) {
        if (rng_.chance(0.9)) return network_.establish(each);
        if (rng_.chance(0.5)) return network_.reject(each);
        network_.destroy(each);
      });
    }
    if (std::holds_alternative<Disconnected>(event) && rng_.chance(0.5))
      return later(id, [this](Id& each) { network_.disconnect(each); });
    if (rng_.chance(0.3)) later(id, [this](Id& each) { network_.disconnect(each); });
    if (rng_.chance(0.3)) later(id, [this](Id& each) { network_.destroy(each); });
  }

  void check_agreement() {
    for (Id& id : network_.ids()) {
      if (id.is_denied) fail("ICMP denies that there is anybody, while " + id.name + " has an answer to give");
      if (!id.is_established()) continue;
      Id* peer = network_.peer_of(id);
      if (peer == nullptr) fail(id.name + " is established, and there is no such connection at the other end");
      if (!peer->is_established()) fail(id.name + " is established, and " + peer->name + " is not");
      const Agreement& own = id.connection().agreement();
      const Agreement& other = peer->connection().agreement();
      if (own.remote_qpn != peer->qpn || own.sq_psn != other.rq_psn || own.initiator_depth != other.responder_resources)
        fail(id.name + " and " + peer->name + " have agreed on different things");
    }
  }

  void tear_down() {
    for (Id& id : network_.ids()) {
      if (id.entry != nullptr) network_.destroy(id);
    }
    if (!network_.run_until_idle(kSettleWithin)) fail("the network never rests");
    for (std::size_t host = 0; host < config_.hosts; ++host) {
      if (network_.is_alive(host) && network_.connections(host) != 0) fail("a connection is left over");
      network_.stop_listening(host);
      if (network_.has_service_port(host)) fail("nobody listens, and the port is held");
    }
  }

  [[noreturn]] void fail(const std::string& why) {
    FAIL(network_.trace() << why << "\n" << sim::replay_hint(seed_, "build/tests/cm/test_cm '[cm][sim]'"));
    throw std::logic_error("not reached");
  }

  const std::uint64_t seed_;
  queue::Rng rng_;
  queue::Rng data_rng_;  // its own: without it the runs of known seeds would be others
  Network network_;
  const NetworkConfig config_;
  bool may_die_ = false;
  std::set<std::string> heard_;
};

TEST_CASE("both ends of each connection hear a possible story and agree in the end", "[cm][sim]") {
  for (const std::uint64_t seed : sim::seeds_to_run(kSeedsFile)) Run(seed).run();
}

TEST_CASE("the runs meet every event, and refusals of all kinds", "[cm][sim]") {
  std::set<std::string> missing{"REPLIED",    "ESTABLISHED", "DISCONNECTED", "TIMEWAIT_EXIT", "UNREACHABLE",
                                "REJECTED 4", "REJECTED 6",  "REJECTED 8",   "REJECTED 10",   "REJECTED 28"};
  constexpr std::uint64_t kSeedsMax = 500;
  for (std::uint64_t seed = 1; seed <= kSeedsMax && !missing.empty(); ++seed) {
    Run run(seed);
    for (const std::string& heard : run.run()) missing.erase(heard);
  }
  CHECK(missing == std::set<std::string>{});
}

}  // namespace
}  // namespace nicless::cm::test
