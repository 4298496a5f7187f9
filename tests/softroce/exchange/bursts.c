// SPDX-License-Identifier: MIT
#include <endian.h>
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

// Three parts of the source and of the target are messages, and the fourth of the target begins with a counter.
enum { kRounds = 50, kPart = kRoom / 4, kSendBytes = 3000, kRequests = 8 };

struct burst {
  struct ibv_sge bytes[kRequests];
  struct ibv_send_wr requests[kRequests];
  unsigned count;
};

static struct ibv_send_wr* add(struct burst* burst, const struct end* end, enum ibv_wr_opcode opcode, uint8_t* local,
                               unsigned bytes, unsigned place) {
  const unsigned i = burst->count++;
  burst->bytes[i] = (struct ibv_sge){.addr = (uintptr_t)local, .length = bytes, .lkey = end->region->lkey};
  burst->requests[i] =
      (struct ibv_send_wr){.wr_id = i, .opcode = opcode, .sg_list = &burst->bytes[i], .num_sge = bytes == 0 ? 0 : 1};
  burst->requests[i].wr.rdma.remote_addr = be64toh(end->peer.target) + place;
  burst->requests[i].wr.rdma.rkey = be32toh(end->peer.key);
  if (i > 0) burst->requests[i - 1].next = &burst->requests[i];
  return &burst->requests[i];
}

static struct ibv_send_wr* add_atomic(struct burst* burst, const struct end* end, enum ibv_wr_opcode opcode,
                                      uint8_t* local) {
  struct ibv_send_wr* const request = add(burst, end, opcode, local, 8, 0);
  request->wr.atomic.remote_addr = be64toh(end->peer.target) + 3 * kPart;
  request->wr.atomic.rkey = be32toh(end->peer.key);
  return request;
}

static void post_burst(struct end* end, uint32_t round, uint64_t counter) {
  uint8_t* const source = source_of(end);
  uint8_t* const landing = landing_of(end);
  struct burst burst = {.count = 0};
  add(&burst, end, IBV_WR_RDMA_WRITE, source, kPart, 0);
  add(&burst, end, IBV_WR_RDMA_READ, landing, kPart, kPart);
  add_atomic(&burst, end, IBV_WR_ATOMIC_FETCH_AND_ADD, landing + 2 * kPart)->wr.atomic.compare_add = 1;
  add(&burst, end, IBV_WR_SEND, source + kPart, kSendBytes, 0);
  add(&burst, end, IBV_WR_RDMA_WRITE_WITH_IMM, source + 2 * kPart, kPart, 2 * kPart)->imm_data = htobe32(~round);
  add(&burst, end, IBV_WR_RDMA_READ, landing + kPart, kPart, 0);  // what the first request has written
  struct ibv_send_wr* const swap = add_atomic(&burst, end, IBV_WR_ATOMIC_CMP_AND_SWP, landing + 2 * kPart + 8);
  swap->wr.atomic.compare_add = counter + 1;
  swap->wr.atomic.swap = counter + 100;
  add(&burst, end, IBV_WR_SEND_WITH_IMM, NULL, 0, 0)->imm_data = htobe32(round);
  post(end, burst.requests);
}

void request_bursts(struct end* end, const char* address, const char* port) {
  request_plainly(end, address, port);
  expect_said(end, 0);  // the target is filled
  uint64_t counter = 0;
  for (uint32_t round = 1; round <= kRounds; round++) {
    now_doing("burst %u", round);
    fill(source_of(end), kRoom, round);
    memset(landing_of(end), 0xa5, kRoom);
    post_burst(end, round, counter);
    for (unsigned i = 0; i < kRequests; i++) {
      const struct ibv_wc wc = next_completion(end, end->sent);
      expect_status(&wc, IBV_WC_SUCCESS);
      if (wc.wr_id != i) fail("completion of request %lu, and not %u", (unsigned long)wc.wr_id, i);
    }
    uint8_t wanted[2 * kPart + 16];
    fill(wanted, kPart, 0);  // the part that nobody writes
    fill(wanted + kPart, kPart, round);
    const uint64_t atomics[] = {counter, counter + 1};
    memcpy(wanted + 2 * kPart, atomics, sizeof atomics);
    compare(landing_of(end), wanted, sizeof wanted, "what was read and fetched");
    counter += 100;
    expect_said(end, round);
  }
  disconnect(end);
}

static void expect_message(struct end* end, enum ibv_wc_opcode opcode, unsigned bytes, const uint8_t* wanted) {
  const struct ibv_wc wc = next_completion(end, end->received);
  expect_status(&wc, IBV_WC_SUCCESS);
  if (wc.opcode != opcode || wc.byte_len != bytes) fail("receive of opcode %d, %u bytes", wc.opcode, wc.byte_len);
  if (opcode == IBV_WC_RECV)
    compare(inbox_of(end, wc.wr_id), wanted, bytes, "the message");
  else
    compare(target_of(end) + 2 * kPart, wanted, bytes, "what came with the immediate data");
  post_receive(end, wc.wr_id);
}

void respond_to_bursts(struct end* end) {
  respond_plainly(end);
  memset(target_of(end), 0, kRoom);
  fill(target_of(end) + kPart, kPart, 0);
  say(end, 0);
  for (uint32_t round = 1; round <= kRounds; round++) {
    now_doing("burst %u", round);
    uint8_t source[kRoom];
    fill(source, kRoom, round);
    expect_message(end, IBV_WC_RECV, kSendBytes, source + kPart);
    expect_message(end, IBV_WC_RECV_RDMA_WITH_IMM, kPart, source + 2 * kPart);
    expect_said(end, round);
    compare(target_of(end), source, kPart, "what was written first");
    say(end, round);
  }
  expect_disconnected(end);
}
