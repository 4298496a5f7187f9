// SPDX-License-Identifier: MIT
// Goal: faults between an engine and its socket do to real datagrams what they say, the same ones for the same seed,
// and wait for nobody's thread. Method: ports on the loopback interface, management datagrams as the traffic. What is
// lost is seen by what came, as loopback itself loses none of so few. Time that a delay takes is an argument: no turn
// is taken before it is due.
#include "wire/io/faults.h"

#include <arpa/inet.h>
#include <poll.h>

#include <catch2/catch.hpp>

#include "tests/support/mads.h"
#include "wire/io/clock.h"
#include "wire/io/udp_port.h"

using namespace nicless;
using namespace nicless::wire;
using namespace std::chrono_literals;

namespace {

constexpr int kPatienceMs = 10000;
constexpr unsigned kCount = 200;

Gid loopback() {
  in_addr address{};
  address.s_addr = htonl(INADDR_LOOPBACK);
  return gid_of(address);
}

std::shared_ptr<UdpPort> open(std::optional<LinkConfig> faults = std::nullopt) {
  auto port = UdpPort::open(any_address(), nullptr, faults ? std::make_unique<Faults>(*faults) : nullptr);
  REQUIRE(port.has_value());
  return *port;
}

void post(UdpPort& from, UdpPort& to, unsigned count) {
  queue::MutexLock lock(from.mutex);
  for (unsigned i = 0; i < count; ++i) {
    Mad mad;
    mad.from = {loopback(), from.udp_port()};
    mad.to = {loopback(), to.udp_port()};
    mad.ip = {0, 64};
    mad.bytes = test::numbered_mad(i);
    from.engine().gsi().post(mad);
  }
}

void send_at(UdpPort& port, queue::Instant now) {
  queue::MutexLock lock(port.mutex);
  port.send(now);
}

// The numbers of all that comes until the one with `last` has come; nothing follows that one.
std::vector<unsigned> receive_until(UdpPort& port, unsigned last) {
  std::vector<unsigned> numbers;
  while (numbers.empty() || numbers.back() != last) {
    queue::MutexLock lock(port.mutex);
    pollfd waited{port.fd(), POLLIN, 0};
    REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
    port.turn(now());
    while (auto mad = port.engine().gsi().take()) numbers.push_back(test::number_of(mad->bytes));
  }
  return numbers;
}

constexpr unsigned kLast = 255;

// A datagram that nothing befalls, from another port: what was sent before it has arrived, on loopback.
void send_last(UdpPort& to) {
  const auto port = open();
  queue::MutexLock lock(port->mutex);
  Mad mad;
  mad.from = {loopback(), port->udp_port()};
  mad.to = {loopback(), to.udp_port()};
  mad.bytes = test::numbered_mad(kLast);
  port->engine().gsi().post(mad);
  port->send(now());
}

std::vector<unsigned> arrived(const LinkConfig& config, unsigned count, LinkCounters& counters) {
  const auto a = open(config);
  const auto b = open();
  post(*a, *b, count);
  send_at(*a, now());
  {
    queue::MutexLock lock(a->mutex);
    a->flush_faults();
    counters = a->fault_counters();
  }
  send_last(*b);
  std::vector<unsigned> numbers = receive_until(*b, kLast);
  numbers.pop_back();
  return numbers;
}

}  // namespace

TEST_CASE("the same seed loses the same datagrams, another seed others", "[faults]") {
  LinkConfig config;
  config.seed = 7;
  config.loss = 0.1;
  LinkCounters first_counters, again_counters, other_counters;
  const auto first = arrived(config, kCount, first_counters);
  const auto again = arrived(config, kCount, again_counters);
  config.seed = 8;
  const auto other = arrived(config, kCount, other_counters);

  CHECK(first == again);
  CHECK(first_counters == again_counters);
  CHECK(first_counters.sent == kCount);
  CHECK(first_counters.lost == kCount - first.size());
  CHECK(first_counters.lost > 0);
  CHECK(first != other);
}

TEST_CASE("turning another fault on changes nothing in which datagrams are lost", "[faults]") {
  LinkConfig config;
  config.loss = 0.1;
  LinkCounters alone, together;
  arrived(config, kCount, alone);
  config.duplicate = 0.2;
  config.reorder = 0.3;
  arrived(config, kCount, together);
  CHECK(alone.lost == together.lost);
}

TEST_CASE("every datagram may be lost, or come twice", "[faults]") {
  LinkConfig config;
  LinkCounters counters;
  config.loss = 1;
  CHECK(arrived(config, 20, counters).empty());
  config.loss = 0;
  config.duplicate = 1;
  const auto twice = arrived(config, 3, counters);
  CHECK(twice == std::vector<unsigned>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("a datagram with a flipped bit is found out by its ICRC and dropped", "[faults]") {
  LinkConfig config;
  config.corrupt = 1;
  const auto a = open(config);
  const auto b = open();
  post(*a, *b, kCount);
  send_at(*a, now());
  send_last(*b);
  // Two bits of the BTH's reserved byte are congestion marks, and the rest of it is nobody's: a flip there is let pass.
  const auto numbers = receive_until(*b, kLast);
  queue::MutexLock lock(b->mutex);
  const EngineCounters& seen = b->engine().counters();
  const auto refused = seen.bad_icrc + seen.bad_version + seen.unknown_opcode + seen.bad_pad + seen.truncated;
  CHECK(refused + numbers.size() == kCount + 1);
  CHECK(refused > kCount * 9 / 10);
}

TEST_CASE("overtaken datagrams come later than those behind them, and all come", "[faults]") {
  LinkConfig config;
  config.reorder = 0.3;
  LinkCounters counters;
  auto numbers = arrived(config, kCount, counters);
  CHECK(!std::is_sorted(numbers.begin(), numbers.end()));
  CHECK(counters.reordered > 0);
  std::sort(numbers.begin(), numbers.end());
  REQUIRE(numbers.size() == kCount);
  for (unsigned i = 0; i < kCount; ++i) CHECK(numbers[i] == i);
}

TEST_CASE("a delayed datagram is a deadline of its port, and leaves when that is met", "[faults]") {
  LinkConfig config;
  config.latency = 10s;
  const auto a = open(config);
  const auto b = open();
  const queue::Instant start = now();
  post(*a, *b, 1);
  send_at(*a, start);
  CHECK(a->next_deadline() == start + 10s);

  send_at(*a, start + 10s - 1ns);
  CHECK(a->next_deadline() == start + 10s);
  {
    queue::MutexLock lock(a->mutex);
    a->turn(start + 10s);
  }
  CHECK(!a->next_deadline());
  CHECK(receive_until(*b, 0) == std::vector<unsigned>{0});
}

TEST_CASE("what is held back leaves before its port is closed", "[faults]") {
  LinkConfig config;
  config.latency = 10s;
  const auto a = open(config);
  const auto b = open();
  post(*a, *b, kCount);
  send_at(*a, now());
  {
    queue::MutexLock lock(a->mutex);
    a->close();
  }
  CHECK(receive_until(*b, kCount - 1).size() == kCount);
}

TEST_CASE("more than may be held back is lost and counted", "[faults]") {
  LinkConfig config;
  config.latency = 10s;
  config.queue_bytes = 1000;
  const auto a = open(config);
  const auto b = open();
  post(*a, *b, 20);
  send_at(*a, now());
  queue::MutexLock lock(a->mutex);
  const LinkCounters counters = a->fault_counters();
  CHECK(counters.sent == 20);
  CHECK(counters.overflowed == 17);  // a management datagram has 280 bytes
}
