// SPDX-License-Identifier: MIT
#include "tests/softroce/exchange/end.h"

#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAckTimeout = 16 };  // 4.096 us * 2^16: a quarter of a second, where rdma_cm would have two

static char doing[200] = "starting";

void now_doing(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(doing, sizeof doing, format, arguments);
  va_end(arguments);
}

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("not as expected, %s: ", doing);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  exit(1);
}

void check(bool is_good, const char* call) {
  if (!is_good) fail("%s failed: %s", call, strerror(errno));
}

void wait_readable(int fd, const char* what) {
  struct pollfd wanted = {.fd = fd, .events = POLLIN};
  if (poll(&wanted, 1, kBoundMs) != 1) fail("%s within %d s", what, kBoundMs / 1000);
}

// ---------------------------------------------------------------- the connection manager

void expect_event(struct end* end, enum rdma_cm_event_type kind, int status, void* data, unsigned bytes) {
  wait_readable(end->events->fd, "no event of rdma_cm");
  struct rdma_cm_event* event;
  check(rdma_get_cm_event(end->events, &event) == 0, "rdma_get_cm_event");
  if (event->event != kind || event->status != status) {
    fail("%s, status %d, and not %s, status %d", rdma_event_str(event->event), event->status, rdma_event_str(kind),
         status);
  }
  if (bytes != 0) {
    const struct rdma_conn_param* const conn = &event->param.conn;
    if (conn->private_data_len < bytes) fail("%d bytes of private data, and not %u", conn->private_data_len, bytes);
    memcpy(data, conn->private_data, bytes);
  }
  if (kind == RDMA_CM_EVENT_CONNECT_REQUEST) end->id = event->id;
  check(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
}

void expect_silence(struct end* end, int milliseconds) {
  struct pollfd wanted = {.fd = end->events->fd, .events = POLLIN};
  if (poll(&wanted, 1, milliseconds) != 0) fail("an event of rdma_cm, and not silence");
}

static struct addrinfo* address_of(const char* address, const char* port) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
  struct addrinfo* found;
  if (getaddrinfo(address, port, &hints, &found) != 0) fail("%s port %s is no address", address, port);
  return found;
}

void listen_at(struct end* end, const char* address, const char* port) {
  check((end->events = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
  check(rdma_create_id(end->events, &end->listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_bind_addr(end->listener, address_of(address, port)->ai_addr) == 0, "rdma_bind_addr");
  check(rdma_listen(end->listener, 4) == 0, "rdma_listen");
}

// Memory, queues and queue pair for end->id. Returns what the peer has to know of them.
static struct announcement equip(struct end* end, int receives) {
  struct ibv_context* const device = end->id->verbs;
  end->is_soft_roce = strncmp(ibv_get_device_name(device->device), "rxe", 3) == 0;
  check((end->pd = ibv_alloc_pd(device)) != NULL, "ibv_alloc_pd");
  check((end->channel = ibv_create_comp_channel(device)) != NULL, "ibv_create_comp_channel");
  check((end->sent = ibv_create_cq(device, 64, NULL, end->channel, 0)) != NULL, "ibv_create_cq");
  check((end->received = ibv_create_cq(device, 64, NULL, end->channel, 0)) != NULL, "ibv_create_cq");
  const size_t bytes = (3 + kReceives) * kRoom;
  check((end->memory = aligned_alloc(4096, bytes)) != NULL, "aligned_alloc");
  memset(end->memory, 0, bytes);
  const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                  IBV_ACCESS_MW_BIND;
  check((end->region = ibv_reg_mr(end->pd, end->memory, bytes, all)) != NULL, "ibv_reg_mr");
  check((end->read_only = ibv_reg_mr(end->pd, end->memory, kRoom, IBV_ACCESS_REMOTE_READ)) != NULL, "ibv_reg_mr");

  struct ibv_qp_init_attr wanted = {.send_cq = end->sent,
                                    .recv_cq = end->received,
                                    .cap = {.max_send_wr = 32,
                                            .max_recv_wr = kReceives,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1,
                                            .max_inline_data = kInline},
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1};
  check(rdma_create_qp(end->id, end->pd, &wanted) == 0, "rdma_create_qp");
  for (int i = 0; i < receives; i++) post_receive(end, i);
  return (struct announcement){.target = htobe64((uintptr_t)target_of(end)),
                               .key = htobe32(end->region->rkey),
                               .read_only_key = htobe32(end->read_only->rkey),
                               .is_soft_roce = htobe32(end->is_soft_roce)};
}

static void learn_path_mtu(struct end* end) {
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr created;
  check(ibv_query_qp(end->id->qp, &attributes, IBV_QP_PATH_MTU, &created) == 0, "ibv_query_qp");
  end->path_mtu = 128U << attributes.path_mtu;
}

static struct rdma_conn_param parameters(const struct end* end, const struct announcement* own, int rnr_retry_count) {
  return (struct rdma_conn_param){.private_data = own,
                                  .private_data_len = sizeof *own,
                                  .responder_resources = 4,
                                  .initiator_depth = 4,
                                  .retry_count = end->retry_count,
                                  .rnr_retry_count = rnr_retry_count};
}

void take_request(struct end* end) {
  expect_event(end, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &end->peer, sizeof end->peer);
}

void accept_request(struct end* end, int receives, int rnr_retry_count) {
  const struct announcement own = equip(end, receives);
  struct rdma_conn_param wanted = parameters(end, &own, rnr_retry_count);
  check(rdma_accept(end->id, &wanted) == 0, "rdma_accept");
  expect_event(end, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
  learn_path_mtu(end);
}

void resolve(struct end* end, const char* address, const char* port) {
  if (end->events == NULL) check((end->events = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
  check(rdma_create_id(end->events, &end->id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  uint8_t ack_timeout = kAckTimeout;
  check(rdma_set_option(end->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout, sizeof ack_timeout) == 0,
        "rdma_set_option");
  check(rdma_resolve_addr(end->id, NULL, address_of(address, port)->ai_addr, 5000) == 0, "rdma_resolve_addr");
  expect_event(end, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
  check(rdma_resolve_route(end->id, 5000) == 0, "rdma_resolve_route");
  expect_event(end, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
}

void send_request(struct end* end) {
  const struct announcement own = equip(end, kReceives);
  struct rdma_conn_param wanted = parameters(end, &own, kForEver);
  check(rdma_connect(end->id, &wanted) == 0, "rdma_connect");
}

void expect_established(struct end* end) {
  expect_event(end, RDMA_CM_EVENT_ESTABLISHED, 0, &end->peer, sizeof end->peer);
  learn_path_mtu(end);
}

void respond_plainly(struct end* end) {
  now_doing("connecting");
  take_request(end);
  accept_request(end, kReceives, kForEver);
}

void request_plainly(struct end* end, const char* address, const char* port) {
  now_doing("connecting");
  resolve(end, address, port);
  send_request(end);
  expect_established(end);
}

void expect_disconnected(struct end* end) {
  now_doing("waiting for the end of the connection");
  expect_event(end, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
}

void disconnect(struct end* end) {
  check(rdma_disconnect(end->id) == 0, "rdma_disconnect");
  expect_disconnected(end);
}

// ---------------------------------------------------------------- completions

struct ibv_wc next_completion(struct end* end, struct ibv_cq* cq) {
  struct ibv_wc wc;
  while (ibv_poll_cq(cq, 1, &wc) == 0) {
    check(ibv_req_notify_cq(cq, 0) == 0, "ibv_req_notify_cq");
    if (ibv_poll_cq(cq, 1, &wc) != 0) break;  // it came before the queue was armed
    wait_readable(end->channel->fd, "no completion");
    struct ibv_cq* which;
    void* context;
    check(ibv_get_cq_event(end->channel, &which, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
  }
  return wc;
}

void expect_status(const struct ibv_wc* wc, enum ibv_wc_status status) {
  if (wc->status != status) fail("%s, and not %s", ibv_wc_status_str(wc->status), ibv_wc_status_str(status));
}

void expect_flushed_receives(struct end* end, int count) {
  for (int i = 0; i < count; i++) {
    const struct ibv_wc wc = next_completion(end, end->received);
    expect_status(&wc, IBV_WC_WR_FLUSH_ERR);
  }
  struct ibv_qp_attr attributes;
  struct ibv_qp_init_attr created;
  check(ibv_query_qp(end->id->qp, &attributes, IBV_QP_STATE, &created) == 0, "ibv_query_qp");
  if (attributes.qp_state != IBV_QPS_ERR) fail("the queue pair is in state %d, and not in ERR", attributes.qp_state);
}

void post_receive(struct end* end, uint64_t number) {
  struct ibv_sge room = {.addr = (uintptr_t)inbox_of(end, number), .length = kRoom, .lkey = end->region->lkey};
  struct ibv_recv_wr receive = {.wr_id = number, .sg_list = &room, .num_sge = 1};
  struct ibv_recv_wr* refused;
  errno = ibv_post_recv(end->id->qp, &receive, &refused);
  check(errno == 0, "ibv_post_recv");
}

void post(struct end* end, struct ibv_send_wr* first) {
  struct ibv_send_wr* refused;
  errno = ibv_post_send(end->id->qp, first, &refused);
  check(errno == 0, "ibv_post_send");
}

void say(struct end* end, uint32_t number) {
  struct ibv_send_wr message = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(number)};
  post(end, &message);
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_SUCCESS);
}

void expect_said(struct end* end, uint32_t number) {
  const struct ibv_wc wc = next_completion(end, end->received);
  expect_status(&wc, IBV_WC_SUCCESS);
  if (wc.opcode != IBV_WC_RECV || wc.byte_len != 0 || carried(&wc) != IBV_WC_WITH_IMM ||
      be32toh(wc.imm_data) != number) {
    fail("completion %d of %u bytes, flags %x, immediate data %x, and not the number %x", wc.opcode, wc.byte_len,
         wc.wc_flags, be32toh(wc.imm_data), number);
  }
  post_receive(end, wc.wr_id);
}

// ---------------------------------------------------------------- bytes

void fill(uint8_t* bytes, unsigned count, uint32_t number) {
  for (unsigned i = 0; i < count; i++) bytes[i] = (uint8_t)(i * 7 + (i >> 8) + number * 37);
}

void compare(const uint8_t* found, const uint8_t* wanted, unsigned count, const char* what) {
  for (unsigned i = 0; i < count; i++) {
    if (found[i] != wanted[i]) fail("byte %u of %u of %s is %02x, and not %02x", i, count, what, found[i], wanted[i]);
  }
}
