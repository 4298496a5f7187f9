// SPDX-License-Identifier: MIT
// Goal: what one port's engine sends, another port's engine gets, over real sockets, with the addresses it needs; and
// what the kernel says about a port that nobody has reaches whoever asks.
// Method: ports on the loopback interface, with management datagrams as the traffic, since those need no queue pair.
// Waiting is for a condition, by poll(2) on the socket, and bounded.
#include "wire/io/udp_port.h"

#include <arpa/inet.h>
#include <poll.h>

#include <catch2/catch.hpp>
#include <functional>

#include "tests/support/mads.h"
#include "wire/io/clock.h"
#include "wire/io/udp_options.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr int kPatienceMs = 10000;

Gid gid(const char* text) {
  if (in_addr v4{}; inet_pton(AF_INET, text, &v4) == 1) return gid_of(v4);
  in6_addr v6{};
  REQUIRE(inet_pton(AF_INET6, text, &v6) == 1);
  return gid_of(v6);
}

SocketConfig ipv4_wildcard() {
  SocketConfig config;
  config.address.v4 = {};
  config.address.v4.sin_family = AF_INET;
  return config;
}

std::shared_ptr<UdpPort> open(const SocketConfig& config, Trace* trace = nullptr) {
  auto port = UdpPort::open(config, trace);
  REQUIRE(port.has_value());
  return *port;
}

// Waits until the port's socket has something, then takes a turn.
TurnReport turn_when_ready(UdpPort& port) {
  queue::MutexLock lock(port.mutex);
  pollfd waited{port.fd(), POLLIN, 0};
  REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
  return port.turn(now());
}

Mad mad(const Endpoint& from, const Endpoint& to, unsigned number) {
  Mad mad;
  mad.from = from;
  mad.to = to;
  mad.bytes = test::numbered_mad(number);
  mad.bytes[100] = std::byte{0x5a};
  return mad;
}

TurnReport send(UdpPort& port, const std::vector<Mad>& mads) {
  queue::MutexLock lock(port.mutex);
  for (const Mad& each : mads) port.engine().gsi().post(each);
  return port.send(now());
}

std::vector<Mad> receive(UdpPort& port, std::size_t count) {
  std::vector<Mad> got;
  while (got.size() < count) {
    turn_when_ready(port);
    queue::MutexLock lock(port.mutex);
    while (auto each = port.engine().gsi().take()) got.push_back(*each);
  }
  return got;
}

EngineCounters counters(UdpPort& port) {
  queue::MutexLock lock(port.mutex);
  return port.engine().counters();
}

struct CountingTrace final : Trace {
  void on_sent(queue::Instant, const OutDatagram& sealed) override { sent_bytes += sealed.size(); }
  void on_received(queue::Instant, const InDatagram& datagram) override { received_bytes += datagram.bytes.size(); }
  void on_turn_end() override { ++turns; }
  std::size_t sent_bytes = 0, received_bytes = 0, turns = 0;
};

}  // namespace

TEST_CASE("a datagram arrives with both its ends, over IPv4 and IPv6, on dual-stack and plain sockets", "[udp_port]") {
  const bool is_ipv4_only = GENERATE(false, true);
  const char* const address = is_ipv4_only ? "127.0.0.1" : GENERATE("127.0.0.1", "127.0.0.2", "::1");
  const SocketConfig config = is_ipv4_only ? ipv4_wildcard() : any_address();
  if (config.address.any.sa_family == AF_INET && gid(address).is_ipv4() == false) return;  // this kernel has no IPv6
  const auto a = open(config);
  const auto b = open(config);
  const Endpoint from{gid(address), a->udp_port()};
  const Endpoint to{gid(address), b->udp_port()};

  send(*a, {mad(from, to, 7)});

  const auto got = receive(*b, 1);
  REQUIRE(got.size() == 1);
  CHECK(got[0].from == from);
  CHECK(got[0].to == to);
  CHECK(got[0].bytes == mad(from, to, 7).bytes);
}

TEST_CASE("a full batch leaves as segments of one datagram and arrives whole, in order, each ICRC good", "[udp_port]") {
  const char* const address = GENERATE("127.0.0.1", "::1");
  const auto a = open(any_address());
  const auto b = open(any_address());
  const Endpoint from{gid(address), a->udp_port()};
  const Endpoint to{gid(address), b->udp_port()};
  constexpr unsigned kCount = 200;  // more than one batch
  std::vector<Mad> mads;
  for (unsigned i = 0; i < kCount; ++i) mads.push_back(mad(from, to, i));

  send(*a, mads);

  const auto got = receive(*b, kCount);
  REQUIRE(got.size() == kCount);
  for (unsigned i = 0; i < kCount; ++i) CHECK(got[i].bytes == mads[i].bytes);
  EngineCounters expected;
  expected.datagrams_in = kCount;
  CHECK(counters(*b) == expected);
}

TEST_CASE("traffic class and hop limit stand in the IP header", "[udp_port]") {
  const auto a = open(ipv4_wildcard());
  const auto b = open(ipv4_wildcard());
  int on = 1;
  {
    queue::MutexLock lock(b->mutex);
    REQUIRE(setsockopt(b->fd(), IPPROTO_IP, IP_RECVTOS, &on, sizeof on) == 0);
    REQUIRE(setsockopt(b->fd(), IPPROTO_IP, IP_RECVTTL, &on, sizeof on) == 0);
  }
  Mad marked = mad({gid("127.0.0.1"), a->udp_port()}, {gid("127.0.0.1"), b->udp_port()}, 1);
  marked.ip = {0x60, 7};

  send(*a, {marked});

  queue::MutexLock lock(b->mutex);
  pollfd waited{b->fd(), POLLIN, 0};
  REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
  alignas(cmsghdr) char control[256];
  std::array<std::byte, 512> bytes;
  iovec vector{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  REQUIRE(recvmsg(b->fd(), &message, 0) > 0);
  int tos = -1, ttl = -1;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_type == IP_TOS) tos = *CMSG_DATA(at);
    if (at->cmsg_type == IP_TTL) std::memcpy(&ttl, CMSG_DATA(at), sizeof ttl);
  }
  CHECK(tos == 0x60);
  CHECK(ttl == 7);
}

TEST_CASE("a datagram to a port that nobody has comes back as unreachable, and the next datagram still leaves",
          "[udp_port]") {
  const char* const address = GENERATE("127.0.0.1", "::1");
  const auto a = open(any_address());
  const auto b = open(any_address());
  auto gone = open(any_address());
  const Endpoint nobody{gid(address), gone->udp_port()};
  {
    queue::MutexLock lock(gone->mutex);
    gone->close();
  }
  const Endpoint from{gid(address), a->udp_port()};

  send(*a, {mad(from, nobody, 1)});
  send(*a, {mad(from, {gid(address), b->udp_port()}, 2)});  // the socket's pending error must not eat it

  CHECK(receive(*b, 1).size() == 1);
  queue::MutexLock lock(a->mutex);
  a->turn(now());
  CHECK(a->take_unreachable() == std::vector<Endpoint>{nobody});
}

TEST_CASE("garbage, empty and truncated datagrams are counted and change nothing", "[udp_port]") {
  const auto b = open(ipv4_wildcard());
  const int raw = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(raw >= 0);
  SocketAddress to;
  to_socket_address({gid("127.0.0.1"), b->udp_port()}, AF_INET, 0, to);
  const std::string garbage(64, '\x5a');
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{3}, garbage.size()}) {
    REQUIRE(sendto(raw, garbage.data(), bytes, 0, &to.any, sizeof to.v4) == static_cast<ssize_t>(bytes));
    turn_when_ready(*b);
  }
  close(raw);
  const EngineCounters seen = counters(*b);
  CHECK(seen.datagrams_in == 3);
  CHECK(seen.truncated == 2);
  CHECK(seen.truncated + seen.bad_version + seen.unknown_opcode + seen.bad_pad + seen.bad_icrc == 3);
}

TEST_CASE("an IPv6 datagram without a UDP checksum, as adapters send them, is taken", "[udp_port]") {
  const SocketConfig config = any_address();
  if (config.address.any.sa_family == AF_INET) return;  // this kernel has no IPv6
  const auto b = open(config);
  const int raw = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(raw >= 0);
  const int on = 1;
  REQUIRE(setsockopt(raw, IPPROTO_UDP, UDP_NO_CHECK6_TX, &on, sizeof on) == 0);
  SocketAddress to;
  to_socket_address({gid("::1"), b->udp_port()}, AF_INET6, 0, to);
  const std::string garbage(64, '\x5a');
  REQUIRE(sendto(raw, garbage.data(), garbage.size(), 0, &to.any, sizeof to.v6) == 64);
  close(raw);
  turn_when_ready(*b);
  CHECK(counters(*b).datagrams_in == 1);
}

TEST_CASE("a refused datagram is reported, not waited for", "[udp_port]") {
  const auto a = open(ipv4_wildcard());
  // The source address is not this host's: the kernel refuses to send from it.
  const TurnReport report = send(*a, {mad({gid("203.0.113.77"), a->udp_port()}, {gid("127.0.0.1"), a->udp_port()}, 1)});
  REQUIRE(report.refusal);
  CHECK(report.refusal->errno_value != 0);
  CHECK(report.refusal->bytes > kMadBytes);
}

TEST_CASE("the UDP port number is free as soon as the port is closed", "[udp_port]") {
  auto first = open(ipv4_wildcard());
  SocketConfig again = ipv4_wildcard();
  again.address.v4.sin_port = htons(first->udp_port());
  const auto refused = UdpPort::open(again, nullptr);
  REQUIRE(refused.has_error());
  CHECK(refused.error().errno_value == EADDRINUSE);
  queue::MutexLock lock(first->mutex);
  first->close();
  CHECK(UdpPort::open(again, nullptr).has_value());
  CHECK(first->turn(now()).received == 0);
}

TEST_CASE("a trace hears every datagram, sent and received", "[udp_port]") {
  CountingTrace trace;
  const auto a = open(any_address(), &trace);
  const auto b = open(any_address(), &trace);
  send(*a, {mad({gid("127.0.0.1"), a->udp_port()}, {gid("127.0.0.1"), b->udp_port()}, 1)});
  receive(*b, 1);
  CHECK(trace.sent_bytes > kMadBytes);
  CHECK(trace.sent_bytes == trace.received_bytes);
  CHECK(trace.turns >= 2);
}
