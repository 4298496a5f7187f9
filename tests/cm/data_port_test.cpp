// SPDX-License-Identifier: MIT
// Goal: what the UDP port of a connection's queue pair says about the connection. It is open as long as the connection
// stands, so that a peer that finds it closed knows that it has ended, and that is what an end does that finds the
// peer's closed. Method: the public interface of the built libraries over loopback.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

// A UDP socket like any other program's; -1: the port is taken.
class PlainSocket {
 public:
  explicit PlainSocket(std::uint16_t port) : fd_(socket(AF_INET, SOCK_DGRAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    is_bound_ = bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~PlainSocket() { close(fd_); }
  PlainSocket(const PlainSocket&) = delete;
  PlainSocket& operator=(const PlainSocket&) = delete;
  bool is_bound() const { return is_bound_; }
  std::uint16_t port() const {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes);
    return ntohs(address.sin_port);
  }

 private:
  int fd_;
  bool is_bound_ = false;
};

std::uint16_t port_of(std::uint32_t qpn) {
  return static_cast<std::uint16_t>(qpn >> 8);
}

bool is_taken(std::uint16_t port) {
  return !PlainSocket(port).is_bound();
}

TEST_CASE("a connection keeps the port of its queue pair open when the program destroys that", "[rdma][data_port]") {
  Connected c;
  const std::uint16_t port = port_of(c.active->qp->qp_num);
  REQUIRE(port == port_of(c.passive->qp->qp_num));
  rdma_destroy_qp(c.active);
  rdma_destroy_qp(c.passive);
  CHECK(is_taken(port));
  REQUIRE(rdma_disconnect(c.active) == 0);
  c.passive_channel.next(RDMA_CM_EVENT_DISCONNECTED);
  c.active_channel.next(RDMA_CM_EVENT_DISCONNECTED);
  CHECK_FALSE(is_taken(port));
}

TEST_CASE("a queue pair is destroyed with its port when no connection stands", "[rdma][data_port]") {
  Connected c;
  const std::uint16_t port = port_of(c.active->qp->qp_num);
  REQUIRE(rdma_disconnect(c.active) == 0);
  c.passive_channel.next(RDMA_CM_EVENT_DISCONNECTED);
  c.active_channel.next(RDMA_CM_EVENT_DISCONNECTED);
  rdma_destroy_qp(c.active);
  CHECK(is_taken(port));
  rdma_destroy_qp(c.passive);
  CHECK_FALSE(is_taken(port));
}

TEST_CASE("who sends to a queue pair whose port is closed is told that the connection has ended", "[rdma][data_port]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  auto socket = std::make_unique<PlainSocket>(0);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  rdma_cm_id* server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  param.qp_num = std::uint32_t{socket->port()} << 8;
  REQUIRE(rdma_accept(server, &param) == 0);
  active.next(RDMA_CM_EVENT_ESTABLISHED);
  passive.next(RDMA_CM_EVENT_ESTABLISHED);
  socket.reset();
  REQUIRE(rdma_post_send(client, nullptr, nullptr, 0, nullptr, 0) == 0);
  CHECK(active.next(RDMA_CM_EVENT_DISCONNECTED).status == 0);
  // The other end lives, and hears of it when it asks, if not before.
  destroy(client);
  destroy(server);
}

}  // namespace
}  // namespace nicless::cm::test
