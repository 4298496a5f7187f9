// SPDX-License-Identifier: MIT
// Goal: programs that bring queue pairs of their own (UCX, libfabric) get all that those need, and complete the
// connection themselves: rdma_init_qp_attr(3), rdma_establish(3), rdma_notify(3). Method: the public interface of the
// built libraries.
#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

struct Attributes {
  ibv_qp_attr attr{};
  int mask = 0;
};

Attributes attributes(rdma_cm_id* id, ibv_qp_state state) {
  Attributes a;
  std::memset(&a.attr, 0xa5, sizeof a.attr);
  a.attr.qp_state = state;
  REQUIRE(rdma_init_qp_attr(id, &a.attr, &a.mask) == 0);
  CHECK(a.attr.qp_state == state);
  return a;
}

int wanted(rdma_cm_id* id, ibv_qp_state state) {
  Attributes a;
  a.attr.qp_state = state;
  return rdma_init_qp_attr(id, &a.attr, &a.mask);
}

// A request that has been accepted, and whose reply the client has fetched or is still to fetch; without queue pairs.
struct Accepted {
  explicit Accepted(bool is_fetched = true) {
    client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
    rdma_conn_param param = usual_param();
    param.qp_num = 0x123456;
    param.responder_resources = 2;
    param.initiator_depth = 3;
    param.rnr_retry_count = 5;
    REQUIRE(rdma_connect(client, &param) == 0);
    server = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id;
    param.qp_num = 0x654321;
    param.responder_resources = 3;
    param.initiator_depth = 2;
    param.rnr_retry_count = 6;
    REQUIRE(rdma_accept(server, &param) == 0);
    if (is_fetched) CHECK(active.next(RDMA_CM_EVENT_CONNECT_RESPONSE).conn.qp_num == 0x654321);
  }
  ~Accepted() {
    destroy(client);
    destroy(server);
  }
  Accepted(const Accepted&) = delete;
  Accepted& operator=(const Accepted&) = delete;
  Channel passive;
  Channel active;
  Listener listener{passive};
  rdma_cm_id* client = nullptr;
  rdma_cm_id* server = nullptr;
};

TEST_CASE("without a queue pair the program completes the connection itself", "[rdma]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
  rdma_conn_param param = usual_param();
  param.qp_num = 0x123456;
  REQUIRE(rdma_connect(client, &param) == 0);
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.conn.qp_num == 0x123456);
  param.qp_num = 0x654321;
  REQUIRE(rdma_accept(request.id, &param) == 0);
  const Seen response = active.next(RDMA_CM_EVENT_CONNECT_RESPONSE);
  CHECK(response.conn.qp_num == 0x654321);
  ibv_qp_attr attr{};
  int mask = 0;
  attr.qp_state = IBV_QPS_RTR;
  REQUIRE(rdma_init_qp_attr(client, &attr, &mask) == 0);
  CHECK(attr.dest_qp_num == 0x654321);
  CHECK((mask & IBV_QP_AV) != 0);
  REQUIRE(rdma_establish(client) == 0);
  passive.next(RDMA_CM_EVENT_ESTABLISHED);
  CHECK_FALSE(active.has_event());
  destroy(client);
  passive.next(RDMA_CM_EVENT_DISCONNECTED);
  destroy(request.id);
}

TEST_CASE("the attributes for each state are those that both ends agreed on", "[rdma]") {
  const Accepted c;
  const Attributes init = attributes(c.client, IBV_QPS_INIT);
  CHECK(init.mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  CHECK(init.attr.port_num == c.client->port_num);
  CHECK(init.attr.qp_access_flags == (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
  const Attributes there = attributes(c.server, IBV_QPS_RTR);
  const Attributes rtr = attributes(c.client, IBV_QPS_RTR);
  CHECK(rtr.mask == (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  CHECK(rtr.attr.dest_qp_num == 0x654321);
  CHECK(there.attr.dest_qp_num == 0x123456);
  CHECK(rtr.attr.max_dest_rd_atomic == 2);
  CHECK(there.attr.max_dest_rd_atomic == 3);
  CHECK(rtr.attr.path_mtu == there.attr.path_mtu);
  CHECK(rtr.attr.ah_attr.is_global == 1);
  CHECK(std::memcmp(&rtr.attr.ah_attr.grh.dgid, &c.client->route.addr.addr.ibaddr.dgid, 16) == 0);
  const Attributes rts = attributes(c.client, IBV_QPS_RTS);
  CHECK(rts.mask == (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                     IBV_QP_MAX_QP_RD_ATOMIC));
  CHECK(rts.attr.sq_psn == there.attr.rq_psn);
  CHECK(attributes(c.server, IBV_QPS_RTS).attr.sq_psn == rtr.attr.rq_psn);
  CHECK(rts.attr.max_rd_atomic == 3);
  CHECK(rts.attr.rnr_retry == 6);
  CHECK(attributes(c.server, IBV_QPS_RTS).attr.rnr_retry == 5);
}

TEST_CASE("there are no attributes before the reply, for other states, or without a device", "[rdma]") {
  Channel passive;
  Channel active;
  const Listener listener(passive);
  CHECK(wanted(listener.get(), IBV_QPS_INIT) == 0);  // it is bound to an address, and so to a device
  rdma_cm_id* unbound = new_id(active);
  CHECK_FAILS(wanted(unbound, IBV_QPS_INIT), EINVAL);
  destroy(unbound);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()), false);
  const Attributes before = attributes(client, IBV_QPS_INIT);
  CHECK(before.mask == (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  CHECK(before.attr.qp_access_flags == 0);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  CHECK(wanted(client, IBV_QPS_INIT) == 0);
  CHECK_FAILS(wanted(client, IBV_QPS_RTR), EINVAL);
  CHECK_FAILS(wanted(client, IBV_QPS_RTS), EINVAL);
  CHECK_FAILS(wanted(client, IBV_QPS_SQD), EINVAL);
  CHECK_FAILS(rdma_establish(client), EINVAL);
  int mask = 0;
  CHECK_FAILS(rdma_init_qp_attr(client, nullptr, &mask), EINVAL);
  destroy(passive.next(RDMA_CM_EVENT_CONNECT_REQUEST).id);
  destroy(client);
}

TEST_CASE("when it is over there are no attributes any more", "[rdma]") {
  Accepted c;
  REQUIRE(rdma_establish(c.client) == 0);
  c.passive.next(RDMA_CM_EVENT_ESTABLISHED);
  CHECK(wanted(c.server, IBV_QPS_RTS) == 0);
  REQUIRE(rdma_disconnect(c.client) == 0);
  c.passive.next(RDMA_CM_EVENT_DISCONNECTED);
  CHECK_FAILS(wanted(c.server, IBV_QPS_RTR), EINVAL);
  CHECK_FAILS(wanted(c.client, IBV_QPS_RTS), EINVAL);
}

TEST_CASE("the library establishes for an id with a queue pair, and refuses to do it twice", "[rdma]") {
  const Connected with_qp;
  CHECK_FAILS(rdma_establish(with_qp.active), EINVAL);
  const Accepted c;
  REQUIRE(rdma_establish(c.client) == 0);
  CHECK_FAILS(rdma_establish(c.client), EINVAL);
}

TEST_CASE("data that comes before the RTU establishes the connection once", "[rdma]") {
  Accepted c(false);
  CHECK_FAILS(rdma_notify(c.client, IBV_EVENT_COMM_EST), EINVAL);
  CHECK_FAILS(rdma_notify(c.server, IBV_EVENT_PATH_MIG), EINVAL);
  REQUIRE(rdma_notify(c.server, IBV_EVENT_COMM_EST) == 0);
  CHECK(c.passive.next(RDMA_CM_EVENT_ESTABLISHED).id == c.server);
  CHECK_FAILS(rdma_notify(c.server, IBV_EVENT_COMM_EST), EISCONN);
  c.active.next(RDMA_CM_EVENT_CONNECT_RESPONSE);
  REQUIRE(rdma_establish(c.client) == 0);
  REQUIRE(rdma_disconnect(c.client) == 0);
  CHECK(c.passive.next(RDMA_CM_EVENT_DISCONNECTED).id == c.server);  // and not ESTABLISHED again, for the RTU
  CHECK(c.active.next(RDMA_CM_EVENT_DISCONNECTED).id == c.client);
}

}  // namespace
}  // namespace nicless::cm::test
