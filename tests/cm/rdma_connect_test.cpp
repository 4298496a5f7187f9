// SPDX-License-Identifier: MIT
// Goal: connections form, carry data, end and fail as the man pages say, with what the events promise in them. Method:
// the public interface of the built libraries, both ends in this process, over loopback.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/cm/rdma_fixture.h"

namespace nicless::cm::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes padded(const std::string& text, std::size_t bytes) {
  Bytes data(text.begin(), text.end());
  data.resize(bytes);
  return data;
}

TEST_CASE("a connection forms, carries a message, and ends with the same event at both ends", "[rdma]") {
  const bool is_v6 = GENERATE(false, true);
  CAPTURE(is_v6);
  Connected c(is_v6 ? ipv6("::1", 0) : ipv4("127.0.0.1", 0));
  char received[64]{};
  char sent[] = "hello";
  ibv_mr* in = rdma_reg_msgs(c.passive, received, sizeof received);
  ibv_mr* out = rdma_reg_msgs(c.active, sent, sizeof sent);
  REQUIRE((in != nullptr && out != nullptr));
  REQUIRE(rdma_post_recv(c.passive, &c, received, sizeof received, in) == 0);
  REQUIRE(rdma_post_send(c.active, nullptr, sent, sizeof sent, out, 0) == 0);
  ibv_wc wc{};
  REQUIRE(rdma_get_recv_comp(c.passive, &wc) == 1);
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.wr_id == reinterpret_cast<std::uintptr_t>(&c));
  CHECK(wc.byte_len == sizeof sent);
  CHECK(std::string(received) == sent);
  REQUIRE(rdma_get_send_comp(c.active, &wc) == 1);
  CHECK(wc.status == IBV_WC_SUCCESS);

  REQUIRE(rdma_disconnect(c.active) == 0);
  CHECK(c.active_channel.next(RDMA_CM_EVENT_DISCONNECTED).status == 0);
  CHECK(c.passive_channel.next(RDMA_CM_EVENT_DISCONNECTED).status == 0);
  CHECK(rdma_disconnect(c.passive) == 0);
  CHECK(rdma_disconnect(c.passive) == 0);
  c.active_channel.next(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  c.passive_channel.next(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  rdma_dereg_mr(in);
  rdma_dereg_mr(out);
}

TEST_CASE("both ends know each other's addresses and ports", "[rdma]") {
  const Connected c;
  CHECK(ntohs(rdma_get_dst_port(c.active)) == c.listener->port());
  CHECK(ntohs(rdma_get_src_port(c.passive)) == c.listener->port());
  CHECK(rdma_get_src_port(c.active) == rdma_get_dst_port(c.passive));
  CHECK(rdma_get_src_port(c.active) != 0);
  CHECK(c.passive->verbs == c.active->verbs);
  CHECK(c.passive->port_num == 1);
  const auto* peer = reinterpret_cast<const sockaddr_in*>(rdma_get_peer_addr(c.passive));
  CHECK(peer->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
}

TEST_CASE("queue pairs get what was agreed", "[rdma]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_conn_param param = usual_param();
  param.responder_resources = 3;
  param.initiator_depth = 2;
  param.retry_count = 5;
  param.rnr_retry_count = 4;
  REQUIRE(rdma_connect(client, &param) == 0);
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.conn.responder_resources == 2);
  CHECK(request.conn.initiator_depth == 3);
  CHECK(request.conn.retry_count == 5);
  CHECK(request.conn.rnr_retry_count == 4);
  CHECK(request.conn.qp_num == client->qp->qp_num);
  CHECK(request.listen_id == listener.get());
  ibv_qp_init_attr attr = small_qp();
  REQUIRE(rdma_create_qp(request.id, nullptr, &attr) == 0);
  rdma_conn_param answer = request.conn;
  answer.private_data = nullptr;
  answer.rnr_retry_count = 6;
  REQUIRE(rdma_accept(request.id, &answer) == 0);
  const Seen response = active.next(RDMA_CM_EVENT_ESTABLISHED);
  CHECK(response.conn.qp_num == request.id->qp->qp_num);
  passive.next(RDMA_CM_EVENT_ESTABLISHED);

  ibv_qp_attr of_client{};
  ibv_qp_attr of_server{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(client->qp, &of_client, IBV_QP_STATE, &init) == 0);
  REQUIRE(ibv_query_qp(request.id->qp, &of_server, IBV_QP_STATE, &init) == 0);
  CHECK(of_client.qp_state == IBV_QPS_RTS);
  CHECK(of_server.qp_state == IBV_QPS_RTS);
  CHECK(of_client.dest_qp_num == request.id->qp->qp_num);
  CHECK(of_server.dest_qp_num == client->qp->qp_num);
  CHECK(of_client.rq_psn == of_server.sq_psn);
  CHECK(of_client.sq_psn == of_server.rq_psn);
  CHECK(of_client.max_dest_rd_atomic == 3);
  CHECK(of_client.max_rd_atomic == 2);
  CHECK(of_server.max_dest_rd_atomic == 2);
  CHECK(of_server.max_rd_atomic == 3);
  CHECK(of_client.retry_cnt == 5);
  CHECK(of_server.retry_cnt == 5);
  CHECK(of_client.rnr_retry == 6);
  CHECK(of_server.rnr_retry == 4);
  CHECK(of_client.min_rnr_timer == 0);
  CHECK(of_client.path_mtu == of_server.path_mtu);
  CHECK(of_client.timeout == of_server.timeout);
  destroy(client);
  destroy(request.id);
}

TEST_CASE("private data arrives zero-padded to what each message holds", "[rdma]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_conn_param param = usual_param();
  param.private_data = "may I";
  param.private_data_len = 5;
  REQUIRE(rdma_connect(client, &param) == 0);
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.private_data == padded("may I", 56));
  SECTION("accepted") {
    ibv_qp_init_attr attr = small_qp();
    REQUIRE(rdma_create_qp(request.id, nullptr, &attr) == 0);
    param.private_data = "welcome";
    param.private_data_len = 7;
    REQUIRE(rdma_accept(request.id, &param) == 0);
    CHECK(active.next(RDMA_CM_EVENT_ESTABLISHED).private_data == padded("welcome", 196));
    CHECK(passive.next(RDMA_CM_EVENT_ESTABLISHED).private_data.empty());
  }
  SECTION("refused") {
    REQUIRE(rdma_reject(request.id, "go away", 7) == 0);
    const Seen refused = active.next(RDMA_CM_EVENT_REJECTED);
    CHECK(refused.status == 28);
    CHECK(refused.private_data == padded("go away", 148));
  }
  destroy(client);
  destroy(request.id);
}

TEST_CASE("private data that does not fit is EINVAL, and the most that fits arrives", "[rdma]") {
  Channel passive;
  Channel active;
  Listener listener(passive);
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", listener.port()));
  const std::string most(56, 'x');
  const std::string more(57, 'x');
  rdma_conn_param param = usual_param();
  param.private_data = more.data();
  param.private_data_len = 57;
  errno = 0;
  CHECK(rdma_connect(client, &param) == -1);
  CHECK(errno == EINVAL);
  param.private_data_len = 56;
  CHECK(rdma_connect(client, &param) == 0);
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(request.private_data == padded(most, 56));
  destroy(request.id);
  CHECK(active.next(RDMA_CM_EVENT_REJECTED).status == 28);
  destroy(client);
}

TEST_CASE("nobody listens: REJECTED with status 8", "[rdma]") {
  Channel active;
  Channel passive;
  std::uint16_t port = 0;
  SECTION("the port is free") {
    Listener gone(passive);
    port = gone.port();
  }
  std::unique_ptr<Listener> other;
  SECTION("the port belongs to another port space") {
    rdma_cm_id* datagram = nullptr;
    REQUIRE(rdma_create_id(passive.get(), &datagram, nullptr, RDMA_PS_UDP) == 0);
    auto address = ipv4("127.0.0.1", 0);
    REQUIRE(rdma_bind_addr(datagram, as_sockaddr(address)) == 0);
    REQUIRE(rdma_listen(datagram, 0) == 0);
    port = ntohs(rdma_get_src_port(datagram));
    rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", port));
    rdma_conn_param param = usual_param();
    REQUIRE(rdma_connect(client, &param) == 0);
    CHECK(active.next(RDMA_CM_EVENT_REJECTED).status == 8);
    destroy(client);
    destroy(datagram);
  }
  if (port == 0) return;
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", port));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  CHECK(active.next(RDMA_CM_EVENT_REJECTED).status == 8);
  destroy(client);
}

TEST_CASE("port 0 is nobody's: what asks for it is told so at once", "[rdma]") {
  const auto space = GENERATE(RDMA_PS_TCP, RDMA_PS_UDP);
  Channel active;
  rdma_cm_id* client = resolved(active, ipv4("127.0.0.1", 0), true, space);
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(client, &param) == 0);
  REQUIRE(active.has_event());
  const Seen refused = active.next();
  CHECK(refused.type == (space == RDMA_PS_TCP ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE));
  CHECK(refused.status == (space == RDMA_PS_TCP ? 8 : 1));
  destroy(client);
}

TEST_CASE("destroying either id of a connection disconnects the other", "[rdma]") {
  Connected c;
  const bool destroy_active = GENERATE(true, false);
  rdma_cm_id*& victim = destroy_active ? c.active : c.passive;
  destroy(victim);
  victim = nullptr;
  CHECK((destroy_active ? c.passive_channel : c.active_channel).next(RDMA_CM_EVENT_DISCONNECTED).status == 0);
}

TEST_CASE("destroying a listener refuses what it has not handed out, and leaves its connections alone", "[rdma]") {
  Connected c;
  rdma_cm_id* late = resolved(c.active_channel, ipv4("127.0.0.1", c.listener->port()));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(late, &param) == 0);
  REQUIRE(c.passive_channel.has_event(10000));
  c.listener.reset();
  CHECK(c.active_channel.next(RDMA_CM_EVENT_REJECTED).status == 28);
  destroy(late);
  CHECK_FALSE(c.passive_channel.has_event());
  REQUIRE(rdma_disconnect(c.active) == 0);
  c.passive_channel.next(RDMA_CM_EVENT_DISCONNECTED);
  c.active_channel.next(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_CASE("a peer that is killed, or exits without a word, disconnects, idle as the connection is", "[rdma]") {
  const int signal_number = GENERATE(SIGKILL, SIGTERM);
  Channel passive;
  Listener listener(passive);
  const std::uint16_t port = listener.port();
  const pid_t child = fork();
  if (child == 0) {  // an engine of its own; waits to be killed
    rdma_event_channel* channel = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP);
    sockaddr_storage to{};
    reinterpret_cast<sockaddr_in&>(to).sin_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(to).sin_port = htons(port);
    reinterpret_cast<sockaddr_in&>(to).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rdma_cm_event* event = nullptr;
    rdma_resolve_addr(id, nullptr, as_sockaddr(to), 1000);
    rdma_get_cm_event(channel, &event);
    rdma_ack_cm_event(event);
    rdma_resolve_route(id, 1000);
    rdma_get_cm_event(channel, &event);
    rdma_ack_cm_event(event);
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    rdma_conn_param param{};
    if (rdma_create_qp(id, nullptr, &attr) != 0 || rdma_connect(id, &param) != 0) _exit(1);
    signal(SIGTERM, [](int) { std::exit(0); });
    for (;;) {
      rdma_get_cm_event(channel, &event);
      pause();
    }
  }
  const Seen request = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  ibv_qp_init_attr attr = small_qp();
  REQUIRE(rdma_create_qp(request.id, nullptr, &attr) == 0);
  rdma_conn_param param{};
  REQUIRE(rdma_accept(request.id, &param) == 0);
  passive.next(RDMA_CM_EVENT_ESTABLISHED);
  kill(child, signal_number);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  passive.next(RDMA_CM_EVENT_DISCONNECTED);
  destroy(request.id);
}

TEST_CASE("after a fork the parent's objects are dead in the child, and the parent goes on", "[rdma]") {
  Connected c;
  const pid_t child = fork();
  if (child == 0) {
    rdma_cm_event* event = nullptr;
    errno = 0;
    bool is_dead = rdma_disconnect(c.active) == -1 && errno == ENODEV;
    errno = 0;
    is_dead = is_dead && rdma_get_cm_event(c.active_channel.get(), &event) == -1 && errno == ENODEV;
    rdma_event_channel* own = rdma_create_event_channel();
    rdma_cm_id* id = nullptr;
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    const bool lives = own != nullptr && rdma_create_id(own, &id, nullptr, RDMA_PS_TCP) == 0 &&
                       rdma_bind_addr(id, as_sockaddr(any)) == 0 && rdma_listen(id, 1) == 0 && rdma_destroy_id(id) == 0;
    _exit(is_dead && lives ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  REQUIRE(rdma_disconnect(c.active) == 0);
  c.passive_channel.next(RDMA_CM_EVENT_DISCONNECTED);
}

TEST_CASE("a full backlog makes the peer ask again instead of refusing it", "[rdma]") {
  Channel passive;
  Channel active;
  Listener listener(passive, ipv4("127.0.0.1", 0), 1);
  rdma_cm_id* first = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_cm_id* second = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_conn_param param = usual_param();
  REQUIRE(rdma_connect(first, &param) == 0);
  REQUIRE(passive.has_event(10000));
  REQUIRE(rdma_connect(second, &param) == 0);
  const Seen one = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  const Seen two = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(one.conn.qp_num == first->qp->qp_num);
  CHECK(two.conn.qp_num == second->qp->qp_num);
  destroy(one.id);
  destroy(two.id);
  active.next(RDMA_CM_EVENT_REJECTED);
  active.next(RDMA_CM_EVENT_REJECTED);
  destroy(first);
  destroy(second);
}

}  // namespace
}  // namespace nicless::cm::test
