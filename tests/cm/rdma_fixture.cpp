// SPDX-License-Identifier: MIT
#include "tests/cm/rdma_fixture.h"

#include <arpa/inet.h>
#include <poll.h>

#include <catch2/catch.hpp>
#include <cstring>

namespace nicless::cm::test {
namespace {

constexpr int kPatience = 10000;  // ms: a bound, not a measure

}  // namespace

sockaddr_storage ipv4(const char* address, std::uint16_t port) {
  sockaddr_storage made{};
  auto& in = reinterpret_cast<sockaddr_in&>(made);
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, address, &in.sin_addr) == 1);
  return made;
}

sockaddr_storage ipv6(const char* address, std::uint16_t port) {
  sockaddr_storage made{};
  auto& in6 = reinterpret_cast<sockaddr_in6&>(made);
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  REQUIRE(inet_pton(AF_INET6, address, &in6.sin6_addr) == 1);
  return made;
}

sockaddr* as_sockaddr(sockaddr_storage& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

Channel::Channel() : channel_(rdma_create_event_channel()) {
  REQUIRE(channel_ != nullptr);
}

Channel::~Channel() {
  rdma_destroy_event_channel(channel_);
}

bool Channel::has_event(int milliseconds) const {
  pollfd waiting{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

rdma_cm_event* Channel::fetch() {
  REQUIRE(has_event(kPatience));
  rdma_cm_event* event = nullptr;
  REQUIRE(rdma_get_cm_event(channel_, &event) == 0);
  return event;
}

Seen Channel::next() {
  rdma_cm_event* event = fetch();
  Seen seen{event->event, event->status, event->id, event->listen_id, {}, {}, {}};
  seen.ud = event->param.ud;
  seen.conn = event->param.conn;
  const auto* data = static_cast<const std::uint8_t*>(event->param.conn.private_data);
  if (data != nullptr) seen.private_data.assign(data, data + event->param.conn.private_data_len);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  return seen;
}

Seen Channel::next(rdma_cm_event_type type) {
  Seen seen = next();
  INFO("status " << seen.status);
  REQUIRE(std::string(rdma_event_str(seen.type)) == rdma_event_str(type));
  return seen;
}

Listener::Listener(Channel& channel, sockaddr_storage address, int backlog, rdma_port_space space) {
  REQUIRE(rdma_create_id(channel.get(), &id_, nullptr, space) == 0);
  REQUIRE(rdma_bind_addr(id_, as_sockaddr(address)) == 0);
  REQUIRE(rdma_listen(id_, backlog) == 0);
}

Listener::~Listener() {
  CHECK(rdma_destroy_id(id_) == 0);
}

std::uint16_t Listener::port() const {
  return ntohs(rdma_get_src_port(id_));
}

rdma_cm_id* new_id(Channel& channel, rdma_port_space space, void* context) {
  rdma_cm_id* id = nullptr;
  REQUIRE(rdma_create_id(channel.get(), &id, context, space) == 0);
  return id;
}

ibv_qp_init_attr small_qp(ibv_qp_type type) {
  ibv_qp_init_attr attr{};
  attr.qp_type = type;
  attr.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 16};
  attr.sq_sig_all = 1;
  return attr;
}

rdma_conn_param usual_param() {
  rdma_conn_param param{};
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

rdma_cm_id* resolved(Channel& channel, sockaddr_storage to, bool with_qp, rdma_port_space space) {
  rdma_cm_id* id = new_id(channel, space);
  REQUIRE(rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000) == 0);
  channel.next(RDMA_CM_EVENT_ADDR_RESOLVED);
  REQUIRE(rdma_resolve_route(id, 1000) == 0);
  channel.next(RDMA_CM_EVENT_ROUTE_RESOLVED);
  if (with_qp) {
    ibv_qp_init_attr attr = small_qp(id->qp_type);
    REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
  }
  return id;
}

Connected::Connected(sockaddr_storage listen_on) : listener(std::make_unique<Listener>(passive_channel, listen_on)) {
  sockaddr_storage to = listen_on;
  reinterpret_cast<sockaddr_in&>(to).sin_port = htons(listener->port());  // the same place for IPv6
  active = resolved(active_channel, to);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(active, &param) == 0);
  passive = passive_channel.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
  ibv_qp_init_attr attr = small_qp();
  REQUIRE(rdma_create_qp(passive, nullptr, &attr) == 0);
  REQUIRE(rdma_accept(passive, &param) == 0);
  active_channel.next(RDMA_CM_EVENT_ESTABLISHED);
  passive_channel.next(RDMA_CM_EVENT_ESTABLISHED);
}

Connected::~Connected() {
  destroy(active);
  destroy(passive);
  listener.reset();
}

void destroy(rdma_cm_id* id) {
  if (id == nullptr) return;
  if (id->qp != nullptr) rdma_destroy_qp(id);
  CHECK(rdma_destroy_id(id) == 0);
}

}  // namespace nicless::cm::test
