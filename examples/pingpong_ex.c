// SPDX-License-Identifier: MIT
/* The extended verbs, from post to completion: work requests that are built call by call (ibv_wr_post(3)), and
 * completions that are read field by field (ibv_create_cq_ex(3)).
 *
 *   pingpong_ex [ROUNDS]      10 by default
 *
 * Two queue pairs of this process are connected to each other. A number goes from the first to the second and comes
 * back, as immediate data of a message of 32 bytes. The completion of each receive says who sent what, and when it was
 * made: by the device's own clock, so two of them can be subtracted.
 *
 * An ordinary verbs program: nothing in it is particular to nicless.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMessageBytes = 32, kDefaultRounds = 10 };

struct end {
  const char* name;
  struct ibv_qp* qp;
  struct ibv_qp_ex* builder;  // the same queue pair, as the ibv_wr_ functions want it
  char inbox[kMessageBytes];
  struct ibv_mr* mr;  // of the inbox
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq_ex* cq;

// Ends the program when a call has failed. `reason` is an errno value.
static void check(int is_good, const char* call, int reason) {
  if (is_good) return;
  fprintf(stderr, "%s failed: %s\n", call, strerror(reason));
  exit(1);
}

static void open_device(void) {
  struct ibv_device** const list = ibv_get_device_list(NULL);
  check(list != NULL && list[0] != NULL, "ibv_get_device_list", list == NULL ? errno : ENODEV);
  context = ibv_open_device(list[0]);
  check(context != NULL, "ibv_open_device", errno);
  ibv_free_device_list(list);
  pd = ibv_alloc_pd(context);
  check(pd != NULL, "ibv_alloc_pd", errno);

  // A completion queue whose completions tell these things; what was not asked for may not be read.
  struct ibv_cq_init_attr_ex wanted = {.cqe = 16,
                                       .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
                                                   IBV_WC_EX_WITH_QP_NUM |
                                                   IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
  cq = ibv_create_cq_ex(context, &wanted);
  check(cq != NULL, "ibv_create_cq_ex", errno);
}

static void create_end(struct end* end, const char* name) {
  end->name = name;
  // What will be built has to be said beforehand: each operation is a flag.
  struct ibv_qp_init_attr_ex wanted = {.send_cq = ibv_cq_ex_to_cq(cq),
                                       .recv_cq = ibv_cq_ex_to_cq(cq),
                                       .cap = {.max_send_wr = 2,
                                               .max_recv_wr = 2,
                                               .max_send_sge = 1,
                                               .max_recv_sge = 1,
                                               .max_inline_data = kMessageBytes},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM};
  end->qp = ibv_create_qp_ex(context, &wanted);
  check(end->qp != NULL, "ibv_create_qp_ex", errno);
  end->builder = ibv_qp_to_qp_ex(end->qp);
  end->mr = ibv_reg_mr(pd, end->inbox, sizeof end->inbox, IBV_ACCESS_LOCAL_WRITE);
  check(end->mr != NULL, "ibv_reg_mr", errno);
}

static void modify(struct end* end, struct ibv_qp_attr* attr, enum ibv_qp_state state, int mask) {
  attr->qp_state = state;
  const int reason = ibv_modify_qp(end->qp, attr, IBV_QP_STATE | mask);
  check(reason == 0, "ibv_modify_qp", reason);
}

// RESET, INIT, RTR, RTS. Both ends have the same address: the first GID of the device.
static void connect_to(struct end* end, const struct end* peer) {
  struct ibv_qp_attr attr = {.port_num = 1,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer->qp->qp_num,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 12,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}},
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = 1};
  check(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid", errno);
  modify(end, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  modify(
      end, &attr, IBV_QPS_RTR,
      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  modify(end, &attr, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void post_receive(struct end* end) {
  struct ibv_sge list = {(uintptr_t)end->inbox, sizeof end->inbox, end->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = (uintptr_t)end, .sg_list = &list, .num_sge = 1};
  struct ibv_recv_wr* bad;
  const int reason = ibv_post_recv(end->qp, &wr, &bad);
  check(reason == 0, "ibv_post_recv", reason);
}

// Between start and complete any number of requests may be built; they are posted together, or none of them.
static void send_number(struct end* end, uint32_t number) {
  char text[kMessageBytes] = "";
  snprintf(text, sizeof text, "%s says %" PRIu32, end->name, number);
  ibv_wr_start(end->builder);
  end->builder->wr_id = 0;  // of the next request
  end->builder->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ibv_wr_send_imm(end->builder, htonl(number));             // the operation
  ibv_wr_set_inline_data(end->builder, text, sizeof text);  // its data, which is copied here and now
  const int reason = ibv_wr_complete(end->builder);
  check(reason == 0, "ibv_wr_complete", reason);
}

// Polls until a receive has completed, and gives the end that it belongs to. Sends that complete are passed over.
static struct end* await_message(uint32_t* number, uint64_t* when) {
  for (;;) {
    struct ibv_poll_cq_attr nothing = {0};
    const int reason = ibv_start_poll(cq, &nothing);
    if (reason == ENOENT) continue;  // nothing there yet
    check(reason == 0, "ibv_start_poll", reason);
    check(cq->status == IBV_WC_SUCCESS, ibv_wc_status_str(cq->status), EIO);
    struct end* end = NULL;
    if (ibv_wc_read_opcode(cq) == IBV_WC_RECV) {
      end = (struct end*)(uintptr_t)cq->wr_id;
      *number = ntohl(ibv_wc_read_imm_data(cq));
      *when = ibv_wc_read_completion_wallclock_ns(cq);
      check(ibv_wc_read_byte_len(cq) == kMessageBytes, "the length of the message", EPROTO);
      check(ibv_wc_read_qp_num(cq) == end->qp->qp_num, "the queue pair of the message", EPROTO);
    }
    ibv_end_poll(cq);  // what has been read may be forgotten now
    if (end != NULL) return end;
  }
}

int main(int argc, char** argv) {
  const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : kDefaultRounds;
  struct end ping = {0};
  struct end pong = {0};
  open_device();
  create_end(&ping, "ping");
  create_end(&pong, "pong");
  connect_to(&ping, &pong);
  connect_to(&pong, &ping);

  uint64_t there = 0;
  uint64_t back = 0;
  for (uint32_t round = 1; round <= rounds; ++round) {
    uint32_t number = 0;
    post_receive(&ping);
    post_receive(&pong);
    send_number(&ping, round);
    check(await_message(&number, &there) == &pong && number == round, "the way there", EPROTO);
    send_number(&pong, number);
    check(await_message(&number, &back) == &ping && number == round, "the way back", EPROTO);
    printf("round %" PRIu32 ": \"%s\" and back in %" PRIu64 " ns\n", round, pong.inbox, back - there);
  }
  printf("%" PRIu32 " rounds as they should be\n", rounds);

  for (struct end* end = &ping; end != NULL; end = end == &ping ? &pong : NULL) {
    check(ibv_destroy_qp(end->qp) == 0, "ibv_destroy_qp", errno);
    check(ibv_dereg_mr(end->mr) == 0, "ibv_dereg_mr", errno);
  }
  check(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0, "ibv_destroy_cq", errno);
  check(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd", errno);
  check(ibv_close_device(context) == 0, "ibv_close_device", errno);
  return 0;
}
