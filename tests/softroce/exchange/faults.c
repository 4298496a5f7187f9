// SPDX-License-Identifier: MIT
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

enum { kBytes = 64 };

// A request that fails, and how each end is told. `soft_roce` is for where Linux' Soft-RoCE is the responder.
struct fault {
  const char* name;
  enum ibv_wr_opcode opcode;
  void (*spoil)(const struct end*, struct ibv_send_wr*);
  struct told {
    enum ibv_wc_status requester;
    enum ibv_wc_status responder;  // of its first receive; all others are flushed
  } told, soft_roce;
  bool is_refused;  // by Soft-RoCE as the requester, with EINVAL, when it is posted
};

static void wrong_key(const struct end* end, struct ibv_send_wr* request) {
  request->wr.rdma.rkey = be32toh(end->peer.key) ^ 0xff;
}
static void wrong_range(const struct end* end, struct ibv_send_wr* request) {
  request->wr.rdma.remote_addr = be64toh(end->peer.target) + (3 + kReceives) * kRoom - kBytes + 1;
}
static void no_right(const struct end* end, struct ibv_send_wr* request) {
  request->wr.rdma.rkey = be32toh(end->peer.read_only_key);
}
static void too_long(const struct end* end, struct ibv_send_wr* request) {
  (void)end;
  request->sg_list->length = kRoom + 1;
}
static void crooked(const struct end* end, struct ibv_send_wr* request) {
  request->sg_list->length = 8;
  request->wr.atomic.remote_addr = be64toh(end->peer.target) + 4;
  request->wr.atomic.rkey = be32toh(end->peer.key);
}
static void atomic_wrong_key(const struct end* end, struct ibv_send_wr* request) {
  request->sg_list->length = 8;
  request->wr.atomic.remote_addr = be64toh(end->peer.target);
  request->wr.atomic.rkey = be32toh(end->peer.key) ^ 0xff;
}

#define DENIED \
  { IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR }
#define INVALID \
  { IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR }

static const struct fault kFaults[] = {
    {"write-wrong-key", IBV_WR_RDMA_WRITE, wrong_key, DENIED, DENIED, false},
    // Soft-RoCE takes a receive for it.
    {"write-imm-wrong-key",
     IBV_WR_RDMA_WRITE_WITH_IMM,
     wrong_key,
     DENIED,
     {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR},
     false},
    {"read-wrong-key", IBV_WR_RDMA_READ, wrong_key, DENIED, DENIED, false},
    {"atomic-wrong-key", IBV_WR_ATOMIC_FETCH_AND_ADD, atomic_wrong_key, DENIED, DENIED, false},
    {"write-out-of-range", IBV_WR_RDMA_WRITE, wrong_range, DENIED, DENIED, false},
    {"read-out-of-range", IBV_WR_RDMA_READ, wrong_range, DENIED, DENIED, false},
    {"write-without-right", IBV_WR_RDMA_WRITE, no_right, DENIED, DENIED, false},
    {"crooked-atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, crooked, INVALID, INVALID, true},
    // Soft-RoCE says remote operational error, at the last packet.
    {"send-too-long",
     IBV_WR_SEND,
     too_long,
     {IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR},
     {IBV_WC_REM_OP_ERR, IBV_WC_LOC_QP_OP_ERR},
     false},
};
enum { kFaultCount = sizeof kFaults / sizeof *kFaults };

const char* fault_name(unsigned number) {
  return number < kFaultCount ? kFaults[number].name : NULL;
}

static const struct fault* find(const char* name) {
  for (int i = 0; i < kFaultCount; i++) {
    if (strcmp(kFaults[i].name, name) == 0) return &kFaults[i];
  }
  return NULL;
}

bool has_fault(const char* name) {
  return find(name) != NULL;
}

// The request that fails has a good one behind it, which is flushed.
void request_fault(struct end* end, const char* address, const char* port, const char* name) {
  const struct fault* const fault = find(name);
  request_plainly(end, address, port);
  expect_said(end, 1);
  now_doing("%s", name);
  struct ibv_sge bytes = {.addr = (uintptr_t)source_of(end), .length = kBytes, .lkey = end->region->lkey};
  struct ibv_send_wr behind = {.wr_id = 2, .opcode = IBV_WR_SEND};
  struct ibv_send_wr request = {.wr_id = 1, .opcode = fault->opcode, .sg_list = &bytes, .num_sge = 1, .next = &behind};
  request.wr.rdma.remote_addr = be64toh(end->peer.target);
  request.wr.rdma.rkey = be32toh(end->peer.key);
  fault->spoil(end, &request);
  if (fault->is_refused && end->is_soft_roce) {
    struct ibv_send_wr* refused;
    const int why = ibv_post_send(end->id->qp, &request, &refused);
    if (why != EINVAL) fail("ibv_post_send gives errno %d, and not EINVAL", why);
    return disconnect(end);
  }
  post(end, &request);

  const struct told* const told = end->peer.is_soft_roce ? &fault->soft_roce : &fault->told;
  struct ibv_wc wc = next_completion(end, end->sent);
  if (wc.wr_id != 1) fail("completion of request %lu first", (unsigned long)wc.wr_id);
  expect_status(&wc, told->requester);
  now_doing("%s, behind it", name);
  wc = next_completion(end, end->sent);
  if (wc.wr_id != 2) fail("completion of request %lu second", (unsigned long)wc.wr_id);
  expect_status(&wc, IBV_WC_WR_FLUSH_ERR);
  expect_flushed_receives(end, kReceives);
  expect_disconnected(end);
}

// Its queue pair fails without being told by anybody else, and only then does it end the connection.
void respond_to_fault(struct end* end, const char* name) {
  const struct fault* const fault = find(name);
  respond_plainly(end);
  memset(target_of(end), 0, kRoom);
  say(end, 1);
  now_doing("%s", name);
  if (fault->is_refused && be32toh(end->peer.is_soft_roce)) return expect_disconnected(end);
  const struct ibv_wc wc = next_completion(end, end->received);
  expect_status(&wc, (end->is_soft_roce ? &fault->soft_roce : &fault->told)->responder);
  expect_flushed_receives(end, kReceives - 1);
  const uint8_t untouched[kRoom] = {0};
  compare(target_of(end), untouched, kRoom, "the target");
  disconnect(end);
}
