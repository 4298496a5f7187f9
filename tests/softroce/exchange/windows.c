// SPDX-License-Identifier: MIT
#include <endian.h>
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

enum { kWindowBytes = 1000, kSeed = 11 };

static struct ibv_wc carry_out(struct end* end, enum ibv_wr_opcode opcode, uint8_t* local, unsigned bytes) {
  struct ibv_sge list = {.addr = (uintptr_t)local, .length = bytes, .lkey = end->region->lkey};
  struct ibv_send_wr request = {.opcode = opcode, .sg_list = &list, .num_sge = 1};
  request.wr.rdma.remote_addr = be64toh(end->peer.target);
  request.wr.rdma.rkey = be32toh(end->peer.key);
  if (opcode == IBV_WR_SEND_WITH_INV) request.invalidate_rkey = be32toh(end->peer.key);
  post(end, &request);
  return next_completion(end, end->sent);
}

void request_through_window(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  now_doing("waiting for the window's key");
  struct ibv_wc wc = next_completion(end, end->received);
  expect_status(&wc, IBV_WC_SUCCESS);
  memcpy(&end->peer, inbox_of(end, wc.wr_id), sizeof end->peer);

  now_doing("writing through the window");
  fill(source_of(end), kWindowBytes, kSeed);
  wc = carry_out(end, IBV_WR_RDMA_WRITE, source_of(end), kWindowBytes);
  expect_status(&wc, IBV_WC_SUCCESS);
  now_doing("reading through the window");
  wc = carry_out(end, IBV_WR_RDMA_READ, landing_of(end), kWindowBytes);
  expect_status(&wc, IBV_WC_SUCCESS);
  compare(landing_of(end), source_of(end), kWindowBytes, "what was read");
  now_doing("sending with invalidate");
  wc = carry_out(end, IBV_WR_SEND_WITH_INV, source_of(end), 16);
  expect_status(&wc, IBV_WC_SUCCESS);
  now_doing("writing through the window that is invalid");
  wc = carry_out(end, IBV_WR_RDMA_WRITE, source_of(end), 8);
  expect_status(&wc, IBV_WC_REM_ACCESS_ERR);
  expect_disconnected(end);
}

// Binds the window to the beginning of the target; its key.
static uint32_t bind_window(struct end* end) {
  struct ibv_mw* const window = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
  check(window != NULL, "ibv_alloc_mw");
  struct ibv_send_wr bind = {.opcode = IBV_WR_BIND_MW};
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info =
      (struct ibv_mw_bind_info){.mr = end->region,
                                .addr = (uintptr_t)target_of(end),
                                .length = kWindowBytes,
                                .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
  post(end, &bind);
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_SUCCESS);
  if (wc.opcode != IBV_WC_BIND_MW) fail("completion of opcode %d", wc.opcode);
  return bind.bind_mw.rkey;
}

void respond_with_window(struct end* end) {
  respond_plainly(end);
  now_doing("binding a window");
  const uint32_t key = bind_window(end);
  const struct announcement own = {.target = htobe64((uintptr_t)target_of(end)), .key = htobe32(key)};
  memcpy(source_of(end), &own, sizeof own);
  struct ibv_wc wc = carry_out(end, IBV_WR_SEND, source_of(end), sizeof own);
  expect_status(&wc, IBV_WC_SUCCESS);

  now_doing("waiting for the message that invalidates the window");
  wc = next_completion(end, end->received);
  expect_status(&wc, IBV_WC_SUCCESS);
  // Soft-RoCE gives the kernel's number of the flag, which is another one's in verbs.h.
  const unsigned flag = end->is_soft_roce ? IBV_WC_IP_CSUM_OK : IBV_WC_WITH_INV;
  if (wc.opcode != IBV_WC_RECV || wc.byte_len != 16 || carried(&wc) != flag || wc.invalidated_rkey != key) {
    fail("receive of opcode %d, %u bytes, flags %x, key %x, and not %x", wc.opcode, wc.byte_len, wc.wc_flags,
         wc.invalidated_rkey, key);
  }
  uint8_t written[kWindowBytes];
  fill(written, kWindowBytes, kSeed);
  compare(target_of(end), written, kWindowBytes, "the window");
  now_doing("waiting for the write that is refused");
  expect_flushed_receives(end, kReceives - 1);
  disconnect(end);
}
