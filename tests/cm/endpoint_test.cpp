// SPDX-License-Identifier: MIT
// Goal: rdma_create_ep and rdma_get_request make endpoints of every kind that rdma_getaddrinfo describes. Method: the
// public interface of the built libraries, a listener and a client of each kind in this process.
#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

struct Info {
  Info(const char* node, std::uint16_t port, int flags, int qp_type, int space) {
    rdma_addrinfo hints{};
    hints.ai_flags = flags;
    hints.ai_qp_type = qp_type;
    hints.ai_port_space = space;
    REQUIRE(rdma_getaddrinfo(node, std::to_string(port).c_str(), &hints, &info) == 0);
  }
  ~Info() { rdma_freeaddrinfo(info); }
  Info(const Info&) = delete;
  Info& operator=(const Info&) = delete;
  rdma_addrinfo* info = nullptr;
};

struct Endpoint {
  Endpoint(const char* node, std::uint16_t port, int flags, int qp_type, int space, ibv_qp_init_attr* attr) {
    const Info where(node, port, flags, qp_type, space);
    REQUIRE(rdma_create_ep(&id, where.info, nullptr, attr) == 0);
  }
  explicit Endpoint(rdma_cm_id* made) : id(made) {}
  ~Endpoint() { rdma_destroy_ep(id); }
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  rdma_cm_id* id = nullptr;
};

Endpoint listener(int qp_type, int space, ibv_qp_init_attr* attr) {
  return Endpoint("127.0.0.1", 0, RAI_PASSIVE, qp_type, space, attr);
}

std::uint16_t listening(const Endpoint& endpoint) {
  REQUIRE(rdma_listen(endpoint.id, 0) == 0);
  return ntohs(rdma_get_src_port(endpoint.id));
}

rdma_cm_id* requested(const Endpoint& at) {
  rdma_cm_id* id = nullptr;
  REQUIRE(rdma_get_request(at.id, &id) == 0);
  return id;
}

std::future<int> connecting(const Endpoint& client, rdma_conn_param* param = nullptr) {
  return std::async(std::launch::async, [&client, param] { return rdma_connect(client.id, param); });
}

TEST_CASE("datagram endpoints have queue pairs that are ready at once", "[endpoint]") {
  const int space = GENERATE(RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB);
  CAPTURE(space);
  ibv_qp_init_attr attr = small_qp();  // its type is the endpoint's affair
  const Endpoint passive = listener(IBV_QPT_UD, space, &attr);
  const std::uint16_t port = listening(passive);
  const Endpoint client("127.0.0.1", port, 0, IBV_QPT_UD, space, &attr);
  CHECK(client.id->qp->qp_type == IBV_QPT_UD);
  auto connected = connecting(client);
  const Endpoint server(requested(passive));
  REQUIRE(rdma_accept(server.id, nullptr) == 0);
  CHECK(connected.get() == 0);
  const rdma_ud_param& found = client.id->event->param.ud;
  CHECK(found.qp_num == server.id->qp->qp_num);
  for (rdma_cm_id* id : {client.id, server.id}) {
    ibv_qp_attr state{};
    ibv_qp_init_attr init{};
    REQUIRE(ibv_query_qp(id->qp, &state, IBV_QP_STATE | IBV_QP_QKEY, &init) == 0);
    CHECK(state.qp_state == IBV_QPS_RTS);
    CHECK(state.qkey == RDMA_UDP_QKEY);
  }
}

TEST_CASE("unreliable connections connect, and carry messages", "[endpoint]") {
  ibv_qp_init_attr attr = small_qp(IBV_QPT_UC);
  const Endpoint passive = listener(IBV_QPT_UC, RDMA_PS_TCP, &attr);
  const Endpoint client("127.0.0.1", listening(passive), 0, IBV_QPT_UC, RDMA_PS_TCP, &attr);
  auto connected = connecting(client);
  const Endpoint server(requested(passive));
  REQUIRE(rdma_accept(server.id, nullptr) == 0);
  CHECK(connected.get() == 0);
  char message[] = "unreliable";
  char heard[16]{};
  ibv_mr* in = rdma_reg_msgs(server.id, heard, sizeof heard);
  ibv_mr* out = rdma_reg_msgs(client.id, message, sizeof message);
  REQUIRE(rdma_post_recv(server.id, nullptr, heard, sizeof heard, in) == 0);
  REQUIRE(rdma_post_send(client.id, nullptr, message, sizeof message, out, 0) == 0);
  ibv_wc wc{};
  REQUIRE(rdma_get_recv_comp(server.id, &wc) == 1);
  CHECK(std::string(heard) == message);
  rdma_dereg_mr(in);
  rdma_dereg_mr(out);
}

TEST_CASE("an XRC initiator reaches the SRQ of a target's id", "[endpoint][xrc]") {
  ibv_qp_init_attr target{};
  target.cap = {.max_send_wr = 0, .max_recv_wr = 1, .max_send_sge = 0, .max_recv_sge = 1, .max_inline_data = 0};
  const Endpoint passive = listener(IBV_QPT_XRC_RECV, RDMA_PS_IB, &target);
  ibv_qp_init_attr initiator{};
  initiator.cap = {.max_send_wr = 1, .max_recv_wr = 0, .max_send_sge = 1, .max_recv_sge = 0, .max_inline_data = 0};
  initiator.sq_sig_all = 1;
  const Endpoint client("127.0.0.1", listening(passive), 0, IBV_QPT_XRC_SEND, RDMA_PS_IB, &initiator);
  CHECK(client.id->recv_cq == nullptr);
  auto connected = connecting(client);
  const Endpoint server(requested(passive));
  CHECK(server.id->qp->qp_type == IBV_QPT_XRC_RECV);
  ibv_srq_init_attr room{};
  room.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  REQUIRE(rdma_create_srq(server.id, nullptr, &room) == 0);
  std::uint32_t number = 0;
  REQUIRE(ibv_get_srq_num(server.id->srq, &number) == 0);
  REQUIRE(rdma_accept(server.id, nullptr) == 0);
  REQUIRE(connected.get() == 0);
  CHECK(client.id->event->param.conn.qp_num == server.id->qp->qp_num);
  CHECK(client.id->event->param.conn.srq == 1);

  char heard[16]{};
  char message[] = "over XRC";
  ibv_mr* in = rdma_reg_msgs(server.id, heard, sizeof heard);
  ibv_mr* out = rdma_reg_msgs(client.id, message, sizeof message);
  REQUIRE(rdma_post_recv(server.id, nullptr, heard, sizeof heard, in) == 0);
  ibv_sge sge{.addr = reinterpret_cast<std::uintptr_t>(message), .length = sizeof message, .lkey = out->lkey};
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.qp_type.xrc.remote_srqn = number;
  REQUIRE(ibv_post_send(client.id->qp, &wr, &bad) == 0);
  ibv_wc wc{};
  REQUIRE(rdma_get_recv_comp(server.id, &wc) == 1);
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(std::string(heard) == message);
  REQUIRE(rdma_get_send_comp(client.id, &wc) == 1);
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(rdma_disconnect(client.id) == 0);
  CHECK(rdma_disconnect(server.id) == 0);
  rdma_dereg_mr(in);
  rdma_dereg_mr(out);
}

TEST_CASE("ends with queue pairs of different types do not connect: reason 9", "[endpoint]") {
  ibv_qp_init_attr attr = small_qp();
  const Endpoint passive = listener(IBV_QPT_RC, RDMA_PS_TCP, &attr);
  const Endpoint client("127.0.0.1", listening(passive), 0, IBV_QPT_UC, RDMA_PS_TCP, &attr);
  CHECK_FAILS(rdma_connect(client.id, nullptr), ECONNREFUSED);
  CHECK(client.id->event->status == 9);
}

TEST_CASE("without attributes there is no queue pair, at either end", "[endpoint]") {
  const Endpoint passive = listener(IBV_QPT_RC, RDMA_PS_TCP, nullptr);
  const Endpoint client("127.0.0.1", listening(passive), 0, IBV_QPT_RC, RDMA_PS_TCP, nullptr);
  CHECK(client.id->qp == nullptr);
  CHECK(client.id->route.num_paths == 1);
  rdma_conn_param param = usual_param();
  param.qp_num = 1;
  auto connected = connecting(client, &param);
  const Endpoint server(requested(passive));
  CHECK(server.id->qp == nullptr);
  CHECK(server.id->event->param.conn.qp_num == 1);
  REQUIRE(rdma_reject(server.id, nullptr, 0) == 0);
  CHECK(connected.get() == -1);
}

TEST_CASE("a request is shown until it is answered, and its listener may go then", "[endpoint]") {
  const bool is_datagram = GENERATE(false, true);
  const bool is_accepted = GENERATE(false, true);
  CAPTURE(is_datagram, is_accepted);
  const int type = is_datagram ? IBV_QPT_UD : IBV_QPT_RC;
  const int space = is_datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
  ibv_qp_init_attr attr = small_qp(static_cast<ibv_qp_type>(type));
  auto passive = std::make_unique<Endpoint>("127.0.0.1", 0, RAI_PASSIVE, type, space, &attr);
  const Endpoint client("127.0.0.1", listening(*passive), 0, type, space, &attr);
  rdma_conn_param param = usual_param();
  auto connected = connecting(client, &param);
  const Endpoint server(requested(*passive));
  REQUIRE(server.id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
  REQUIRE((is_accepted ? rdma_accept(server.id, &param) : rdma_reject(server.id, nullptr, 0)) == 0);
  CHECK(connected.get() == (is_accepted ? 0 : -1));
  passive.reset();  // does not wait for the request's acknowledgement
}

TEST_CASE("a protection domain that is given is that of the queue pairs, at either end", "[endpoint]") {
  Channel channel;
  rdma_cm_id* any = resolved(channel, ipv4("127.0.0.1", 1), false);
  ibv_pd* pd = ibv_alloc_pd(any->verbs);
  ibv_qp_init_attr attr = small_qp();
  {
    const Info here("127.0.0.1", 0, RAI_PASSIVE, IBV_QPT_RC, RDMA_PS_IB);
    rdma_cm_id* made = nullptr;
    REQUIRE(rdma_create_ep(&made, here.info, pd, &attr) == 0);
    const Endpoint passive(made);
    const Info there("127.0.0.1", listening(passive), 0, IBV_QPT_RC, RDMA_PS_IB);
    REQUIRE(rdma_create_ep(&made, there.info, pd, &attr) == 0);
    const Endpoint client(made);
    CHECK(client.id->qp->pd == pd);
    CHECK(client.id->pd == pd);
    auto connected = connecting(client);
    const Endpoint server(requested(passive));
    CHECK(server.id->qp->pd == pd);
    CHECK(server.id->route.num_paths == 1);
    CHECK(rdma_accept(server.id, nullptr) == 0);
    CHECK(connected.get() == 0);
  }
  CHECK(ibv_dealloc_pd(pd) == 0);
  destroy(any);
}

TEST_CASE("what the address says to the peer goes before what the program says", "[endpoint]") {
  ibv_qp_init_attr attr = small_qp();
  const Endpoint passive = listener(IBV_QPT_RC, RDMA_PS_TCP, nullptr);
  Info where("127.0.0.1", listening(passive), 0, IBV_QPT_RC, RDMA_PS_TCP);
  where.info->ai_connect = std::calloc(1, 4);
  std::memcpy(where.info->ai_connect, "addr", 4);
  where.info->ai_connect_len = 4;
  rdma_cm_id* made = nullptr;
  REQUIRE(rdma_create_ep(&made, where.info, nullptr, &attr) == 0);
  const Endpoint client(made);
  rdma_conn_param param = usual_param();
  param.private_data = "ess";
  param.private_data_len = 3;
  auto connected = connecting(client, &param);
  const Endpoint server(requested(passive));
  CHECK(std::memcmp(server.id->event->param.conn.private_data, "address", 7) == 0);
  rdma_reject(server.id, nullptr, 0);
  CHECK(connected.get() == -1);
}

TEST_CASE("requests of a listener with an event channel come from the channel", "[endpoint]") {
  Channel channel;
  const Listener asynchronous(channel);
  rdma_cm_id* id = nullptr;
  CHECK_FAILS(rdma_get_request(asynchronous.get(), &id), EINVAL);
  CHECK_FAILS(rdma_get_request(nullptr, &id), EINVAL);
  CHECK_FAILS(rdma_create_ep(&id, nullptr, nullptr, nullptr), EINVAL);
}

}  // namespace
}  // namespace nicless::cm::test
