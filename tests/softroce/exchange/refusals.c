// SPDX-License-Identifier: MIT
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

// Why a request is refused: reasons of the CM that rdma_cm gives as the event's status.
enum { kNobodyListens = 8, kConsumerReject = 28 };

static const char kWhy[] = "not today";

static void expect_refused(struct end* end, const char* address, const char* port, int reason, const char* why) {
  resolve(end, address, port);
  send_request(end);
  char said[sizeof kWhy] = "";
  expect_event(end, RDMA_CM_EVENT_REJECTED, reason, said, why == NULL ? 0 : sizeof said);
  if (why != NULL && strcmp(said, why) != 0) fail("private data '%s', and not '%s'", said, why);
  rdma_destroy_qp(end->id);
  check(rdma_destroy_id(end->id) == 0, "rdma_destroy_id");
}

static void try_again(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  disconnect(end);
}

static void accept_second(struct end* end) {
  respond_plainly(end);
  expect_disconnected(end);
}

void request_without_listener(struct end* end, const char* address, const char* port) {
  now_doing("asking where nobody listens");
  expect_refused(end, address, "1", kNobodyListens, NULL);
  try_again(end, address, port);
}

void respond_elsewhere(struct end* end) {
  accept_second(end);
}

void request_rejected(struct end* end, const char* address, const char* port) {
  now_doing("being rejected");
  expect_refused(end, address, port, kConsumerReject, kWhy);
  try_again(end, address, port);
}

void respond_by_rejecting(struct end* end) {
  now_doing("rejecting");
  take_request(end);
  check(rdma_reject(end->id, kWhy, sizeof kWhy) == 0, "rdma_reject");
  check(rdma_destroy_id(end->id) == 0, "rdma_destroy_id");
  accept_second(end);
}

void request_destroyed(struct end* end, const char* address, const char* port) {
  now_doing("asking one who destroys the request");
  expect_refused(end, address, port, kConsumerReject, NULL);
  try_again(end, address, port);
}

void respond_by_destroying(struct end* end) {
  now_doing("destroying the request");
  take_request(end);
  check(rdma_destroy_id(end->id) == 0, "rdma_destroy_id");
  accept_second(end);
}
