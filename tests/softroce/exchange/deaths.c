// SPDX-License-Identifier: MIT
#include <endian.h>
#include <signal.h>
#include <stddef.h>

#include "tests/softroce/exchange/scenarios.h"

enum { kRetries = 2 };  // Soft-RoCE takes 7 for ever

// Both ends have heard each other before one is killed: the connection stands for both.
static void die(void) {
  raise(SIGKILL);
  fail("SIGKILL does not kill");
}

/* When a process is killed, the kernel that has its connections ends them, so its peer sees DISCONNECTED. Nobody does
 * that for a process on nicless: its peer on nicless watches it and sees DISCONNECTED too; its peer on Soft-RoCE finds
 * out when it sends something. */
static void survive(struct end* end) {
  now_doing("being left alone");
  if (end->is_soft_roce && !end->peer.is_soft_roce) {
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    while (wc.status == IBV_WC_SUCCESS) {  // what it says last is heard before it is dead
      struct ibv_send_wr message = {.opcode = IBV_WR_SEND};
      post(end, &message);
      wc = next_completion(end, end->sent);
    }
    expect_status(&wc, IBV_WC_RETRY_EXC_ERR);
  } else {
    expect_event(end, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
    check(rdma_disconnect(end->id) == 0, "rdma_disconnect");
  }
  expect_flushed_receives(end, kReceives);
}

void request_and_die(struct end* end, const char* address, const char* port) {
  end->retry_count = kRetries;
  request_plainly(end, address, port);
  say(end, 1);
  expect_said(end, 2);
  die();
}

void respond_and_survive(struct end* end) {
  respond_plainly(end);
  expect_said(end, 1);
  say(end, 2);
  survive(end);
}

void request_and_survive(struct end* end, const char* address, const char* port) {
  end->retry_count = kRetries;
  request_plainly(end, address, port);
  say(end, 1);
  expect_said(end, 2);
  survive(end);
}

void respond_and_die(struct end* end) {
  respond_plainly(end);
  expect_said(end, 1);
  say(end, 2);
  die();
}

/* A kernel releases the connections of a process that ends, and so does nicless: its peer sees DISCONNECTED at once,
 * whoever it is. */
static void be_left(struct end* end) {
  now_doing("being left alone");
  expect_event(end, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
  check(rdma_disconnect(end->id) == 0, "rdma_disconnect");
  expect_flushed_receives(end, kReceives);
}

void request_and_leave(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  say(end, 1);
  expect_said(end, 2);
}

void respond_and_stay(struct end* end) {
  respond_plainly(end);
  expect_said(end, 1);
  say(end, 2);
  be_left(end);
}

void request_and_stay(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  say(end, 1);
  expect_said(end, 2);
  be_left(end);
}

void respond_and_leave(struct end* end) {
  respond_plainly(end);
  expect_said(end, 1);
  say(end, 2);
}
