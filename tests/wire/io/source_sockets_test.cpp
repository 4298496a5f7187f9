// SPDX-License-Identifier: MIT
// Goal: in strict RoCE v2 a datagram leaves from the source port that was chosen for it, or from the port's own where
// that cannot be had, with an ICRC that fits; ICMP errors come back whichever it was; strangers get no attention there.
// Method: ports and plain sockets at loopback addresses that no other test has, with management datagrams (whose source
// port is 55410) as the traffic. Waiting is for a condition, by poll(2), and bounded.
#include "wire/io/source_sockets.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>

#include "tests/support/bytes.h"
#include "tests/support/mads.h"
#include "wire/addressing.h"
#include "wire/io/clock.h"
#include "wire/io/udp_port.h"
#include "wire/qp/source_port.h"

namespace nicless::wire {
namespace {

constexpr int kPatienceMs = 10000;
constexpr std::uint16_t kMadPort = datagram_source_port(0, kGsiQpn);
const Gid kHere = test::ipv4(127, 47, 201, 1);
const Gid kThere = test::ipv4(127, 47, 201, 2);

SocketConfig bound_to(const Gid& address, std::uint16_t port) {
  SocketConfig config;
  to_socket_address({address, port}, AF_INET, 0, config.address);
  return config;
}

UdpSocket socket_at(const Gid& address, std::uint16_t port) {
  auto socket = UdpSocket::open(bound_to(address, port));
  REQUIRE(socket.has_value());
  return std::move(*socket);
}

std::shared_ptr<UdpPort> port_at(const Gid& address, std::uint16_t udp_port, Addressing addressing) {
  auto port = UdpPort::open(bound_to(address, udp_port), nullptr, nullptr, addressing);
  REQUIRE(port.has_value());
  return *port;
}

// A strict port, and one that tells where datagrams came from.
struct Pair {
  std::shared_ptr<UdpPort> strict = port_at(kHere, kRoceUdpPort, Addressing::strict());
  std::shared_ptr<UdpPort> receiver = port_at(kThere, 0, Addressing::port_in_qpn());

  TurnReport send(std::uint16_t to) const {
    queue::MutexLock lock(strict->mutex);
    strict->engine().gsi().post({{kHere, 0}, {kThere, to}, {}, test::numbered_mad(1)});
    return strict->send(now());
  }
  // Its ICRC fitted, or it would not be here.
  std::uint16_t next_source_port() const {
    queue::MutexLock lock(receiver->mutex);
    for (;;) {
      pollfd waited{receiver->fd(), POLLIN, 0};
      REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
      receiver->turn(now());
      if (const auto mad = receiver->engine().gsi().take()) return mad->from.port;
    }
  }
};

TEST_CASE("a datagram leaves from the port that was chosen for it", "[source_sockets]") {
  const Pair pair;
  CHECK(pair.send(pair.receiver->udp_port()).has_opened);
  CHECK(pair.next_source_port() == kMadPort);
  {
    queue::MutexLock lock(pair.strict->mutex);
    CHECK(pair.strict->take_opened().size() == 1);
  }
  CHECK_FALSE(pair.send(pair.receiver->udp_port()).has_opened);
  CHECK(pair.next_source_port() == kMadPort);
}

TEST_CASE("where the chosen port is somebody else's, the port's own takes its place", "[source_sockets]") {
  const UdpSocket somebody = socket_at(kHere, kMadPort);
  const Pair pair;
  CHECK_FALSE(pair.send(pair.receiver->udp_port()).has_opened);
  CHECK(pair.next_source_port() == kRoceUdpPort);
}

TEST_CASE("an ICMP error about a datagram from a chosen port reaches whoever asks the port", "[source_sockets]") {
  const Pair pair;
  std::uint16_t nobody = 0;
  {
    const UdpSocket gone = socket_at(kThere, 0);
    nobody = gone.port();
  }
  pair.send(nobody);
  queue::MutexLock lock(pair.strict->mutex);
  const std::vector<int> opened = pair.strict->take_opened();
  REQUIRE(opened.size() == 1);
  pollfd waited{opened[0], 0, 0};  // errors only
  REQUIRE(poll(&waited, 1, kPatienceMs) == 1);
  CHECK((waited.revents & POLLERR) != 0);
  pair.strict->on_socket_error();
  CHECK(pair.strict->take_unreachable() == std::vector<Endpoint>{{kThere, nobody}});
}

TEST_CASE("what strangers send to a source port does not make it readable", "[source_sockets]") {
  SourceSockets sources(bound_to(kHere, kRoceUdpPort));
  UdpSocket own;
  REQUIRE(sources.choose(0xc123) == 0xc123);
  const UdpSocket stranger = socket_at(kThere, 0);
  SocketAddress to;
  to_socket_address({kHere, 0xc123}, AF_INET, 0, to);
  REQUIRE(sendto(stranger.fd(), "hello", 5, 0, &to.any, sizeof to.v4) == 5);  // over loopback it has arrived by now
  pollfd waited{sources.find(0xc123, own).fd(), POLLIN, 0};
  CHECK(poll(&waited, 1, 0) == 0);
}

TEST_CASE("there are so many sockets and no more, and each port keeps its own", "[source_sockets]") {
  SourceSockets sources(bound_to(kHere, kRoceUdpPort));
  UdpSocket own;
  for (std::uint16_t i = 0; i < SourceSockets::kSocketsMax; ++i) {
    const auto port = static_cast<std::uint16_t>(0xd000 + i);
    CHECK(sources.choose(port) == port);
    CHECK(sources.choose(port) == port);
    CHECK(sources.find(port, own).port() == port);
  }
  CHECK(sources.take_opened().size() == SourceSockets::kSocketsMax);
  CHECK(sources.choose(0xe000) == kRoceUdpPort);
  CHECK(&sources.find(kRoceUdpPort, own) == &own);
  CHECK(sources.choose(kRoceUdpPort) == kRoceUdpPort);
  CHECK_FALSE(sources.has_opened());
}

}  // namespace
}  // namespace nicless::wire
