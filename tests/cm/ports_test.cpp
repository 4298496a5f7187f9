// SPDX-License-Identifier: MIT
// Goal: a listener's UDP port is open as long as the peers of its requests may ask there, and not longer; and this
// process may have it again at any time. Method: the public interface of the built libraries over loopback; a plain UDP
// socket, which is as good as another process, tells whether the port is free.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

bool is_free(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  auto address = ipv4("127.0.0.1", port);
  const bool is_bound = bind(fd, as_sockaddr(address), sizeof(sockaddr_in)) == 0;
  if (!is_bound) CHECK(errno == EADDRINUSE);
  close(fd);
  return is_bound;
}

// The listener is gone, and its program still has the request of `client`, to be answered.
struct Orphaned {
  explicit Orphaned(rdma_port_space port_space = RDMA_PS_TCP) : space(port_space) {
    std::optional<Listener> listener;
    listener.emplace(passive, ipv4("127.0.0.1", 0), 0, space);
    port = listener->port();
    client = resolved(active, ipv4("127.0.0.1", port), true, space);
    rdma_conn_param param = usual_param();
    REQUIRE(rdma_connect(client, &param) == 0);
    taken = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  }
  ~Orphaned() {
    destroy(client);
    destroy(taken);
  }
  Orphaned(const Orphaned&) = delete;
  Orphaned& operator=(const Orphaned&) = delete;

  void accept() {
    ibv_qp_init_attr attr = small_qp(taken->qp_type);
    REQUIRE(rdma_create_qp(taken, nullptr, &attr) == 0);
    rdma_conn_param param = usual_param();
    REQUIRE(rdma_accept(taken, &param) == 0);
    active.next(RDMA_CM_EVENT_ESTABLISHED);
    if (space == RDMA_PS_TCP) passive.next(RDMA_CM_EVENT_ESTABLISHED);
  }

  const rdma_port_space space;
  Channel passive;
  Channel active;
  std::uint16_t port = 0;
  rdma_cm_id* client = nullptr;
  rdma_cm_id* taken = nullptr;
};

// What a listener there says: nothing is sent to it, so nobody waits.
void check_listening(Channel& channel, const char* address, std::uint16_t port, rdma_port_space space = RDMA_PS_TCP) {
  const Listener again(channel, ipv4(address, port), 0, space);
  CHECK(again.port() == port);
}

TEST_CASE("a request keeps the port of its listener until it is answered; new requests are refused there", "[ports]") {
  const auto space = GENERATE(RDMA_PS_TCP, RDMA_PS_UDP);
  Orphaned o(space);
  CHECK_FALSE(is_free(o.port));
  rdma_cm_id* late = resolved(o.active, ipv4("127.0.0.1", o.port), true, space);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(late, &param) == 0);
  const Seen refused = o.active.next();
  CHECK(refused.id == late);
  CHECK(refused.type == (space == RDMA_PS_TCP ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE));
  CHECK(refused.status == (space == RDMA_PS_TCP ? 8 : 1));
  destroy(late);
  SECTION("accepted") {
    o.accept();
    // The event of the passive end comes a moment before its port is free: taking it again waits for that.
    check_listening(o.passive, "127.0.0.1", o.port, space);
  }
  SECTION("refused") {
    REQUIRE(rdma_reject(o.taken, nullptr, 0) == 0);
    o.active.next();
  }
  SECTION("destroyed") {
    destroy(std::exchange(o.taken, nullptr));
    o.active.next();
  }
  CHECK(is_free(o.port));
}

TEST_CASE("a listener without unanswered requests frees its port at once", "[ports]") {
  Connected c;
  const std::uint16_t port = c.listener->port();
  c.listener.reset();
  CHECK(is_free(port));
}

TEST_CASE("the process may listen again on a port that a request keeps", "[ports]") {
  Orphaned o;
  SECTION("at the same address: the request is answered as ever") {
    check_listening(o.passive, "127.0.0.1", o.port);
    CHECK_FALSE(is_free(o.port));
    o.accept();
  }
  SECTION("at all addresses, for which the socket has to go") {
    check_listening(o.passive, "0.0.0.0", o.port);
    CHECK(is_free(o.port));
    o.accept();
  }
}

TEST_CASE("a listener that waits for an acknowledgement keeps its port open for the request in question", "[ports]") {
  Channel passive;
  Channel active;
  rdma_cm_id* listener = new_id(passive);
  auto address = ipv4("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(listener, as_sockaddr(address)) == 0);
  REQUIRE(rdma_listen(listener, 0) == 0);
  const std::uint16_t port = ntohs(rdma_get_src_port(listener));
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", port));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  rdma_cm_event* request = passive.fetch();
  rdma_cm_id* taken = request->id;
  std::thread destroyer([&] { destroy(listener); });
  // The listener listens no more as soon as a second one is let in.
  rdma_cm_id* second = new_id(passive);
  auto same = ipv4("127.0.0.1", port);
  while (rdma_bind_addr(second, as_sockaddr(same)) != 0) std::this_thread::yield();
  destroy(second);
  CHECK_FALSE(is_free(port));
  REQUIRE(rdma_ack_cm_event(request) == 0);
  destroyer.join();
  CHECK_FALSE(is_free(port));
  destroy(taken);
  CHECK(is_free(port));
  CHECK(active.next(RDMA_CM_EVENT_REJECTED).status == 28);
  destroy(client);
}

}  // namespace
}  // namespace nicless::cm::test
