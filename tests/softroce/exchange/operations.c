// SPDX-License-Identifier: MIT
#include <endian.h>
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

struct operation {
  const char* name;
  enum ibv_wr_opcode opcode;
  unsigned flags;
};

static const struct operation kOperations[] = {
    {"send", IBV_WR_SEND, 0},
    {"solicited send", IBV_WR_SEND, IBV_SEND_SOLICITED},
    {"inline send", IBV_WR_SEND, IBV_SEND_INLINE},
    {"send with immediate data", IBV_WR_SEND_WITH_IMM, 0},
    {"write", IBV_WR_RDMA_WRITE, 0},
    {"inline write", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE},
    {"write with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {"read", IBV_WR_RDMA_READ, 0},
    {"fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, 0},
    {"compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, 0},
    {NULL, 0, 0},
};

// Not among the others: Soft-RoCE never sends a fenced read again, because that waits for itself.
static const struct operation kFenced[] = {
    {"fenced read", IBV_WR_RDMA_READ, IBV_SEND_FENCE},
    {"fenced send", IBV_WR_SEND, IBV_SEND_FENCE},
    {"fenced fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_SEND_FENCE},
    {NULL, 0, 0},
};

// One request. Both ends count through the same ones.
struct step {
  const struct operation* operation;
  unsigned size_index;
  unsigned bytes;
  uint32_t number;  // from 1; all bytes of the step are made from it
};

static bool is_atomic(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}
static bool is_write(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
static bool has_immediate(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
static bool takes_receive(enum ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || has_immediate(opcode);
}

// The size of that index, or -1 behind the last: what is empty, what needs padding, and both sides of a packet's limit.
static int size_of(const struct operation* operation, unsigned index, unsigned mtu) {
  const unsigned any[] = {0, 1, 2, 3, 64, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5};
  const unsigned small[] = {0, 1, 13, 64, kInline};
  if (is_atomic(operation->opcode)) return index < 4 ? 8 : -1;
  if (operation->flags & IBV_SEND_INLINE) return index < 5 ? (int)small[index] : -1;
  return index < 10 ? (int)any[index] : -1;
}

// The next step, in place. False behind the last.
static bool advance(struct step* step, unsigned mtu) {
  if (step->number > 0) step->size_index++;
  int bytes = size_of(step->operation, step->size_index, mtu);
  if (bytes < 0) {
    step->size_index = 0;
    step->operation++;
    if (step->operation->name == NULL) return false;
    bytes = size_of(step->operation, 0, mtu);
  }
  step->bytes = bytes;
  step->number++;
  now_doing("step %u, %s of %u bytes", step->number, step->operation->name, step->bytes);
  return true;
}

// Where in the target: at every remainder modulo 4, but for atomics.
static unsigned place_of(const struct step* step) {
  return is_atomic(step->operation->opcode) ? 0 : step->number % 7;
}

static uint64_t operand_of(const struct step* step, uint64_t now) {
  if (step->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) return UINT64_C(0x8000000100000003) + step->number;
  return step->size_index % 2 == 0 ? now : now + 1;  // compared with: equal, then different
}

static uint64_t swapped_in(const struct step* step) {
  return UINT64_C(0x0123456789abcdef) * step->number;
}

// What the step does to the target.
static void apply(const struct step* step, uint8_t* target) {
  uint64_t value;
  memcpy(&value, target, sizeof value);
  if (is_write(step->operation->opcode)) fill(target + place_of(step), step->bytes, step->number);
  if (step->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) value += operand_of(step, value);
  if (step->operation->opcode == IBV_WR_ATOMIC_CMP_AND_SWP && operand_of(step, value) == value)
    value = swapped_in(step);
  if (is_atomic(step->operation->opcode)) memcpy(target, &value, sizeof value);
}

// What the target holds; kept in step at both ends.
static uint8_t reference[kRoom];

// ---------------------------------------------------------------- the requester

static void request_step(struct end* end, const struct step* step) {
  const enum ibv_wr_opcode opcode = step->operation->opcode;
  const bool is_fetched = opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
  uint8_t* const local = is_fetched ? landing_of(end) : source_of(end);
  if (is_fetched)
    memset(local, 0xa5, kRoom);
  else
    fill(local, step->bytes, step->number);

  struct ibv_sge bytes = {.addr = (uintptr_t)local, .length = step->bytes, .lkey = end->region->lkey};
  struct ibv_send_wr request = {.wr_id = step->number,
                                .sg_list = &bytes,
                                .num_sge = step->bytes == 0 ? 0 : 1,
                                .opcode = opcode,
                                .send_flags = step->operation->flags,
                                .imm_data = htobe32(~step->number)};
  const uint64_t place = be64toh(end->peer.target) + place_of(step);
  if (is_atomic(opcode)) {
    uint64_t now;
    memcpy(&now, reference, sizeof now);
    request.wr.atomic.remote_addr = place;
    request.wr.atomic.rkey = be32toh(end->peer.key);
    request.wr.atomic.compare_add = operand_of(step, now);
    request.wr.atomic.swap = swapped_in(step);
  } else {
    request.wr.rdma.remote_addr = place;
    request.wr.rdma.rkey = be32toh(end->peer.key);
  }
  post(end, &request);
}

static void expect_step_done(struct end* end, const struct step* step) {
  const enum ibv_wr_opcode opcode = step->operation->opcode;
  const struct ibv_wc wc = next_completion(end, end->sent);
  expect_status(&wc, IBV_WC_SUCCESS);
  const enum ibv_wc_opcode wanted = opcode == IBV_WR_RDMA_READ              ? IBV_WC_RDMA_READ
                                    : opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD
                                    : opcode == IBV_WR_ATOMIC_CMP_AND_SWP   ? IBV_WC_COMP_SWAP
                                    : is_write(opcode)                      ? IBV_WC_RDMA_WRITE
                                                                            : IBV_WC_SEND;
  if (wc.wr_id != step->number || wc.opcode != wanted || wc.qp_num != end->id->qp->qp_num) {
    fail("completion of wr_id %lu, opcode %d, QPN %x", (unsigned long)wc.wr_id, wc.opcode, wc.qp_num);
  }
  if (wanted == IBV_WC_SEND || wanted == IBV_WC_RDMA_WRITE) return;
  if (wc.byte_len != step->bytes) fail("byte_len %u", wc.byte_len);
  uint8_t untouched[kRoom];
  memset(untouched, 0xa5, sizeof untouched);
  compare(landing_of(end), reference + place_of(step), step->bytes, "what was fetched");
  compare(landing_of(end) + step->bytes, untouched, kRoom - step->bytes, "the memory behind what was fetched");
}

static void request_all(struct end* end, const struct operation* first, const char* address, const char* port) {
  request_plainly(end, address, port);
  fill(reference, kRoom, 0);
  for (struct step step = {.operation = first}; advance(&step, end->path_mtu);) {
    request_step(end, &step);
    expect_step_done(end, &step);
    apply(&step, reference);
    say(end, step.number);
    expect_said(end, step.number);
  }
  disconnect(end);
}

void request_operations(struct end* end, const char* address, const char* port) {
  request_all(end, kOperations, address, port);
}

void request_fenced(struct end* end, const char* address, const char* port) {
  request_all(end, kFenced, address, port);
}

// ---------------------------------------------------------------- the responder

static void expect_message(struct end* end, const struct step* step) {
  const struct ibv_wc wc = next_completion(end, end->received);
  expect_status(&wc, IBV_WC_SUCCESS);
  const bool is_with_immediate = has_immediate(step->operation->opcode);
  const enum ibv_wc_opcode opcode = is_write(step->operation->opcode) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
  if (wc.opcode != opcode || wc.byte_len != step->bytes || wc.qp_num != end->id->qp->qp_num ||
      carried(&wc) != (is_with_immediate ? IBV_WC_WITH_IMM : 0)) {
    fail("receive of opcode %d, %u bytes, flags %x, QPN %x", wc.opcode, wc.byte_len, wc.wc_flags, wc.qp_num);
  }
  if (is_with_immediate && be32toh(wc.imm_data) != ~step->number) fail("immediate data %x", be32toh(wc.imm_data));
  if (opcode == IBV_WC_RECV) {
    uint8_t wanted[kRoom];
    fill(wanted, step->bytes, step->number);
    compare(inbox_of(end, wc.wr_id), wanted, step->bytes, "the message");
  }
  post_receive(end, wc.wr_id);
}

static void respond_to_all(struct end* end, const struct operation* first) {
  respond_plainly(end);
  fill(reference, kRoom, 0);
  fill(target_of(end), kRoom, 0);  // the peer's first steps do not touch it
  for (struct step step = {.operation = first}; advance(&step, end->path_mtu);) {
    if (takes_receive(step.operation->opcode)) expect_message(end, &step);
    expect_said(end, step.number);
    apply(&step, reference);
    compare(target_of(end), reference, kRoom, "the target");
    say(end, step.number);
  }
  expect_disconnected(end);
}

void respond_to_operations(struct end* end) {
  respond_to_all(end, kOperations);
}

void respond_to_fenced(struct end* end) {
  respond_to_all(end, kFenced);
}
