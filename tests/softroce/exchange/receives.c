// SPDX-License-Identifier: MIT
#include <endian.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>

#include "tests/softroce/exchange/scenarios.h"

// ---------------------------------------------------------------- solicited

static void send_empty(struct end* end, unsigned flags) {
  struct ibv_send_wr message = {.opcode = IBV_WR_SEND, .send_flags = flags};
  post(end, &message);
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_SUCCESS);
}

void request_solicited(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  expect_said(end, 1);
  now_doing("sending what wakes nobody");
  send_empty(end, 0);
  fill(source_of(end), 1, 1);
  struct ibv_sge byte = {.addr = (uintptr_t)source_of(end), .length = 1, .lkey = end->region->lkey};
  struct ibv_send_wr flag = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &byte, .num_sge = 1};
  flag.wr.rdma.remote_addr = be64toh(end->peer.target);
  flag.wr.rdma.rkey = be32toh(end->peer.key);
  post(end, &flag);
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_SUCCESS);
  expect_said(end, 2);
  now_doing("sending what wakes the peer");
  send_empty(end, IBV_SEND_SOLICITED);
  disconnect(end);
}

// The write lies behind the message that is not solicited: once its byte is there, an event of that would be too.
void respond_to_solicited(struct end* end) {
  respond_plainly(end);
  check(ibv_req_notify_cq(end->received, 1) == 0, "ibv_req_notify_cq");
  say(end, 1);
  now_doing("waiting for a byte in memory");
  struct pollfd events = {.fd = end->channel->fd, .events = POLLIN};
  while (poll(&events, 1, 0) != 0) {  // those of what was said
    struct ibv_cq* which;
    void* context;
    check(ibv_get_cq_event(end->channel, &which, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
    if (which == end->received) fail("an event before anything has come");
  }
  while (*(volatile uint8_t*)target_of(end) == 0) sched_yield();
  if (poll(&events, 1, 0) != 0) fail("a message that is not solicited has made an event");
  now_doing("waiting for a solicited message");
  struct ibv_send_wr message = {.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(2)};
  post(end, &message);
  struct ibv_cq* which;
  do {
    wait_readable(end->channel->fd, "no completion event");
    void* context;
    check(ibv_get_cq_event(end->channel, &which, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(which, 1);
  } while (which != end->received);
  struct ibv_wc wc[3];
  const int found = ibv_poll_cq(end->received, 3, wc);
  if (found != 2) fail("%d completions, and not 2", found);
  expect_disconnected(end);
}

// ---------------------------------------------------------------- late, and never

enum { kLateMs = 500 };  // an RNR NAK or two before the receive is there; rdma_cm leaves the RNR timer at 655 ms

void request_from_late(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  now_doing("sending before there is a receive");
  say(end, 1);
  expect_said(end, 2);
  disconnect(end);
}

void respond_late(struct end* end) {
  now_doing("connecting");
  take_request(end);
  accept_request(end, 0, kForEver);
  now_doing("posting no receive yet");
  expect_silence(end, kLateMs);
  for (int i = 0; i < kReceives; i++) post_receive(end, i);
  expect_said(end, 1);
  say(end, 2);
  expect_disconnected(end);
}

void request_from_never(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  now_doing("sending where there is no receive");
  struct ibv_send_wr message = {.opcode = IBV_WR_SEND_WITH_IMM};
  post(end, &message);
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_RNR_RETRY_EXC_ERR);
  expect_flushed_receives(end, kReceives);
  disconnect(end);
}

void respond_never(struct end* end) {
  now_doing("connecting");
  take_request(end);
  accept_request(end, 0, 1);
  expect_disconnected(end);
}
