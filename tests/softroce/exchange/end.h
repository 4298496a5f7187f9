// SPDX-License-Identifier: MIT
/* One end of a connection, and waiting at it. Every function here ends the program with one sentence if something is
 * not as it has to be, or has not come within a minute. One thread; the memory and all objects live as long as the
 * process. */
#ifndef NICLESS_TESTS_SOFTROCE_EXCHANGE_END_H
#define NICLESS_TESTS_SOFTROCE_EXCHANGE_END_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  kRoom = 16384,     // bytes of each part of the memory: no message is longer
  kReceives = 8,     // that are posted at a time
  kInline = 128,     // bytes
  kForEver = 7,      // of rnr_retry_count
  kBoundMs = 120000  // an emulated machine is slow, and the kernel asks for the end of a connection for over a minute
};

// What each end tells the other in private data. In the byte order of the network.
struct announcement {
  uint64_t target;         // where the peer may write, read and count
  uint32_t key;            // for all of that
  uint32_t read_only_key;  // for the same memory, of a region that may only be read
  uint32_t is_soft_roce;
};

struct end {
  struct rdma_event_channel* events;
  struct rdma_cm_id* listener;  // of the responder
  struct rdma_cm_id* id;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;  // of both queues
  struct ibv_cq* sent;
  struct ibv_cq* received;
  struct ibv_mr* region;
  struct ibv_mr* read_only;
  uint8_t* memory;  // parts of kRoom bytes: the target, the source, the landing, then an inbox for each receive
  struct announcement peer;
  bool is_soft_roce;
  unsigned path_mtu;    // bytes
  uint8_t retry_count;  // that the requester asks for, of both ends
};

static inline uint8_t* target_of(const struct end* end) {
  return end->memory;
}
static inline uint8_t* source_of(const struct end* end) {
  return end->memory + kRoom;
}
static inline uint8_t* landing_of(const struct end* end) {
  return end->memory + 2 * kRoom;
}
static inline uint8_t* inbox_of(const struct end* end, uint64_t receive) {
  return end->memory + (3 + receive) * kRoom;
}

// What the program is at, for the sentence that it fails with.
void now_doing(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Says what is wrong and ends the program with status 1.
void fail(const char* format, ...) __attribute__((format(printf, 1, 2), noreturn));
void check(bool is_good, const char* call);

// Connecting, call by call. `receives` is how many are posted before the peer can send anything.
void listen_at(struct end* end, const char* address, const char* port);
void take_request(struct end* end);
void accept_request(struct end* end, int receives, int rnr_retry_count);
void resolve(struct end* end, const char* address, const char* port);
void send_request(struct end* end);
void expect_established(struct end* end);
// The plain way: all receives posted, RNR NAKs waited out for ever.
void respond_plainly(struct end* end);
void request_plainly(struct end* end, const char* address, const char* port);

// The next event of the connection manager has to be this one, with this status. Its private data is copied to `data`.
void expect_event(struct end* end, enum rdma_cm_event_type kind, int status, void* data, unsigned bytes);
// No event comes for so long.
void expect_silence(struct end* end, int milliseconds);
void disconnect(struct end* end);
void expect_disconnected(struct end* end);

// The next completion of the queue, whatever its status.
struct ibv_wc next_completion(struct end* end, struct ibv_cq* cq);
void expect_status(const struct ibv_wc* wc, enum ibv_wc_status status);
// What came with a message. Soft-RoCE says IBV_WC_GRH too, of connections as of datagrams.
static inline unsigned carried(const struct ibv_wc* wc) {
  return wc->wc_flags & ~(unsigned)IBV_WC_GRH;
}
void wait_readable(int fd, const char* what);
// All receives that are still posted complete with a flush error, and the queue pair is in the error state.
void expect_flushed_receives(struct end* end, int count);

void post_receive(struct end* end, uint64_t number);
void post(struct end* end, struct ibv_send_wr* first);
// Sends a message without payload, with `number` as immediate data, and waits until it has arrived.
void say(struct end* end, uint32_t number);
// The next message is one that say() has sent.
void expect_said(struct end* end, uint32_t number);

// Bytes that are made from a number, and whether they are as they should be.
void fill(uint8_t* bytes, unsigned count, uint32_t number);
void compare(const uint8_t* found, const uint8_t* wanted, unsigned count, const char* what);

#endif
