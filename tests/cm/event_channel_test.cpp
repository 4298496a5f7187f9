// SPDX-License-Identifier: MIT
// Goal: one event channel serves many threads, and epoll, and gives each event to one of them; and takes its ids along
// when it goes. Method: events of the program's own, written by some threads and fetched by others; connections.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "cm/rdma65.h"
#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

constexpr int kThreads = 4;
constexpr int kEventsEach = 500;
constexpr int kEvents = kThreads * kEventsEach;

// Each writes numbers of its own.
std::vector<std::thread> start_writers(rdma_cm_id* id) {
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([id, t] {
      for (int i = 0; i < kEventsEach; ++i) rdma_write_cm_event(id, kUserEvent, 0, std::uint64_t(t * kEventsEach + i));
    });
  return writers;
}

std::uint64_t take(rdma_cm_event* event) {
  std::uint64_t number = 0;
  std::memcpy(&number, &event->param, sizeof number);
  rdma_ack_cm_event(event);
  return number;
}

TEST_CASE("threads that wait on one channel get each event once, between them", "[channel][threads]") {
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  std::vector<std::atomic<int>> seen(kEvents);
  std::atomic<int> left = kEvents;
  std::vector<std::thread> readers;
  for (int t = 0; t < kThreads; ++t)
    readers.emplace_back([&] {
      while (left.fetch_sub(1) > 0) {
        rdma_cm_event* event = nullptr;
        if (rdma_get_cm_event(channel.get(), &event) == 0) ++seen[take(event)];
      }
    });
  for (std::thread& writer : start_writers(id)) writer.join();
  for (std::thread& reader : readers) reader.join();
  for (int i = 0; i < kEvents; ++i) REQUIRE(seen[static_cast<std::size_t>(i)] == 1);
  CHECK_FALSE(channel.has_event());
  destroy(id);
}

TEST_CASE("epoll and O_NONBLOCK see every event, in order for each writer", "[channel][threads]") {
  const bool is_edge_triggered = GENERATE(false, true);
  CAPTURE(is_edge_triggered);
  Channel channel;
  rdma_cm_id* id = new_id(channel);
  REQUIRE(fcntl(channel.get()->fd, F_SETFL, fcntl(channel.get()->fd, F_GETFL) | O_NONBLOCK) == 0);
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  epoll_event interest{};
  interest.events = is_edge_triggered ? EPOLLIN | EPOLLET : EPOLLIN;
  REQUIRE(epoll_ctl(poller, EPOLL_CTL_ADD, channel.get()->fd, &interest) == 0);
  std::vector<std::thread> writers = start_writers(id);
  std::vector<std::uint64_t> next(kThreads, 0);
  for (int got = 0; got < kEvents;) {
    epoll_event ready{};
    REQUIRE(epoll_wait(poller, &ready, 1, 10000) == 1);
    rdma_cm_event* event = nullptr;
    while (rdma_get_cm_event(channel.get(), &event) == 0) {
      const std::uint64_t number = take(event);
      REQUIRE(number % kEventsEach == next[number / kEventsEach]++);
      ++got;
    }
    REQUIRE(errno == EAGAIN);
  }
  for (std::thread& writer : writers) writer.join();
  close(poller);
  destroy(id);
}

// A listener with one connection that stands and one request that nobody has fetched, on a channel that goes.
TEST_CASE("with a channel goes what reports there, as when the kernel's descriptor is closed", "[channel]") {
  Channel active;
  rdma_event_channel* going = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  REQUIRE(rdma_create_id(going, &listener, nullptr, RDMA_PS_TCP) == 0);
  auto address = ipv4("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(listener, as_sockaddr(address)) == 0);
  REQUIRE(rdma_listen(listener, 0) == 0);
  address = ipv4("127.0.0.1", ntohs(rdma_get_src_port(listener)));
  rdma_conn_param param = usual_param();
  rdma_cm_id* first = resolved(active, address);
  REQUIRE(rdma_connect(first, &param) == 0);
  rdma_cm_event* request = nullptr;
  REQUIRE(rdma_get_cm_event(going, &request) == 0);
  rdma_cm_id* server = request->id;
  ibv_qp_init_attr attr = small_qp();
  REQUIRE(rdma_create_qp(server, nullptr, &attr) == 0);
  REQUIRE(rdma_accept(server, &param) == 0);
  active.next(RDMA_CM_EVENT_ESTABLISHED);
  rdma_cm_event* established = nullptr;
  REQUIRE(rdma_get_cm_event(going, &established) == 0);
  REQUIRE(rdma_ack_cm_event(established) == 0);
  rdma_cm_id* second = resolved(active, address);
  REQUIRE(rdma_connect(second, &param) == 0);
  pollfd arrival{.fd = going->fd, .events = POLLIN, .revents = 0};
  REQUIRE(poll(&arrival, 1, 10000) == 1);

  rdma_destroy_event_channel(going);
  std::set<int> told{active.next().type, active.next().type};  // in either order
  CHECK(told == std::set<int>{RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_REJECTED});
  Channel next;
  rdma_cm_id* heir = new_id(next);
  CHECK(rdma_bind_addr(heir, as_sockaddr(address)) == 0);  // the port is free
  CHECK_FAILS(rdma_listen(listener, 0), EBADF);
  CHECK_FAILS(rdma_disconnect(server), EBADF);
  REQUIRE(rdma_ack_cm_event(request) == 0);
  destroy(server);
  destroy(listener);
  destroy(heir);
  destroy(first);
  destroy(second);
}

}  // namespace
}  // namespace nicless::cm::test
