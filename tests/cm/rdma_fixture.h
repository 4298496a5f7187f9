// SPDX-License-Identifier: MIT
// The public interface of librdmacm over loopback, both ends in one process: what a program writes, with the waiting
// bounded so that a test that would hang fails instead.
#pragma once

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nicless::cm::test {

// The call fails with that errno.
#define CHECK_FAILS(call, expected) \
  do {                              \
    errno = 0;                      \
    CHECK((call) == -1);            \
    CHECK(errno == (expected));     \
  } while (false)

sockaddr_storage ipv4(const char* address, std::uint16_t port);
sockaddr_storage ipv6(const char* address, std::uint16_t port);
sockaddr* as_sockaddr(sockaddr_storage& address);

// An event as a value; acknowledged already.
struct Seen {
  rdma_cm_event_type type{};
  int status = 0;
  rdma_cm_id* id = nullptr;
  rdma_cm_id* listen_id = nullptr;
  rdma_conn_param conn{};
  rdma_ud_param ud{};  // of datagram services and multicast groups; the other is meaningless then
  std::vector<std::uint8_t> private_data;
};

class Channel {
 public:
  Channel();
  ~Channel();
  rdma_event_channel* get() const { return channel_; }
  rdma_cm_event* fetch();              // fails the test after some seconds without one
  Seen next();                         // fetched and acknowledged
  Seen next(rdma_cm_event_type type);  // and it has to be that one
  bool has_event(int milliseconds = 0) const;

 private:
  rdma_event_channel* channel_;
};

// A listener on an ephemeral port, and what it takes to connect to it.
class Listener {
 public:
  explicit Listener(Channel& channel, sockaddr_storage address = ipv4("127.0.0.1", 0), int backlog = 0,
                    rdma_port_space space = RDMA_PS_TCP);
  ~Listener();
  rdma_cm_id* get() const { return id_; }
  std::uint16_t port() const;

 private:
  rdma_cm_id* id_ = nullptr;
};

rdma_cm_id* new_id(Channel& channel, rdma_port_space space = RDMA_PS_TCP, void* context = nullptr);
ibv_qp_init_attr small_qp(ibv_qp_type type = IBV_QPT_RC);
// Up to ROUTE_RESOLVED, with a queue pair if wanted.
rdma_cm_id* resolved(Channel& channel, sockaddr_storage to, bool with_qp = true, rdma_port_space space = RDMA_PS_TCP);
rdma_conn_param usual_param();

// Both ends connected over the channels; destroyed together.
class Connected {
 public:
  explicit Connected(sockaddr_storage listen_on = ipv4("127.0.0.1", 0));
  ~Connected();
  Channel passive_channel;
  Channel active_channel;
  std::unique_ptr<Listener> listener;
  rdma_cm_id* active = nullptr;
  rdma_cm_id* passive = nullptr;
};

void destroy(rdma_cm_id* id);  // queue pair and id

}  // namespace nicless::cm::test
