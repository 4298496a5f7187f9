// SPDX-License-Identifier: MIT
/* One message, three buffers: what rdma_post_recvv(3) does, from post to completion.
 *
 *   recvv                     both ends over loopback: the receiver is a child process
 *   recvv -s [-p PORT]        only the receiver
 *   recvv -c ADDR [-p PORT]   only the sender
 *
 * The receiver registers three buffers, each by itself, and posts them as ONE receive: a scatter list of three entries.
 * The sender knows nothing of that. It sends one message from one buffer. The bytes fill the first buffer, then the
 * second, then as much of the third as is left, and the completion gives back the pointer that was posted with the
 * list.
 *
 * Both ends use ids without an event channel: rdma_cm then works synchronously, and each call returns when it is done.
 * An ordinary verbs program: nothing in it is particular to nicless.
 */
#include <errno.h>
#include <inttypes.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char kMessage[] = "Dear receiver,  this message is sent from one buffer and lands in three. Yours, sender";

static const char* role;  // how this process's lines begin

static void say(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("%-9s", role);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  fflush(stdout);
}

// Ends the program when a call has failed. Every rdma_ call here says -1 (or NULL) and leaves the reason in errno.
static void check(int is_good, const char* call) {
  if (is_good) return;
  fprintf(stderr, "%-9s%s failed: %s\n", role, call, strerror(errno));
  exit(1);
}

// An endpoint for `address`: a listener if `flags` is RAI_PASSIVE, else an id with a queue pair, ready to connect. The
// queue pair may hold one receive of up to three scatter entries.
static struct rdma_cm_id* create_endpoint(const char* address, const char* port, int flags) {
  struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP};
  struct rdma_addrinfo* found;
  check(rdma_getaddrinfo(address, port, &hints, &found) == 0, "rdma_getaddrinfo");

  struct ibv_qp_init_attr attributes = {
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 3}, .sq_sig_all = 1};
  struct rdma_cm_id* id;
  check(rdma_create_ep(&id, found, NULL, &attributes) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

// ---------------------------------------------------------------- receiver

// What we hang on the receive and want back with its completion.
struct Receipt {
  const char* name;
};

struct Part {
  const char* name;
  char* bytes;
  uint32_t size;
  struct ibv_mr* region;
};

// Each buffer is memory of its own, registered by itself, so that each has its own key.
static void register_part(struct rdma_cm_id* id, struct Part* part) {
  part->bytes = calloc(1, part->size);
  check(part->bytes != NULL, "calloc");
  part->region = rdma_reg_msgs(id, part->bytes, part->size);
  check(part->region != NULL, "rdma_reg_msgs");
  say("registered buffer '%s': %" PRIu32 " bytes, lkey 0x%08" PRIx32, part->name, part->size, part->region->lkey);
}

// Says where the bytes went; returns 1 if every one of them is where it belongs.
static int is_message_in(const struct Part parts[3], uint32_t message_bytes) {
  int is_same = message_bytes == strlen(kMessage);
  uint32_t offset = 0;
  for (int i = 0; i < 3; ++i) {
    uint32_t left = message_bytes - offset;
    uint32_t here = left < parts[i].size ? left : parts[i].size;
    say("buffer '%s' got %" PRIu32 " of its %" PRIu32 " bytes: \"%.*s\"", parts[i].name, here, parts[i].size, (int)here,
        parts[i].bytes);
    if (is_same && memcmp(parts[i].bytes, kMessage + offset, here) != 0) is_same = 0;
    offset += here;
  }
  return is_same;
}

static int receive_one(struct rdma_cm_id* id) {
  struct Part parts[3] = {{.name = "head", .size = 16}, {.name = "body", .size = 56}, {.name = "tail", .size = 64}};
  struct ibv_sge list[3];
  for (int i = 0; i < 3; ++i) {
    register_part(id, &parts[i]);
    list[i] =
        (struct ibv_sge){.addr = (uintptr_t)parts[i].bytes, .length = parts[i].size, .lkey = parts[i].region->lkey};
  }

  // Posted before the connection is accepted: a message can never arrive and find nothing to go into.
  struct Receipt receipt = {.name = "receipt of the first letter"};
  check(rdma_post_recvv(id, &receipt, list, 3) == 0, "rdma_post_recvv");
  say("posted one receive with a list of the three; its context is %p", (void*)&receipt);
  check(rdma_accept(id, NULL) == 0, "rdma_accept");

  struct ibv_wc completion;
  check(rdma_get_recv_comp(id, &completion) == 1, "rdma_get_recv_comp");
  if (completion.status != IBV_WC_SUCCESS) {
    say("the receive failed: %s", ibv_wc_status_str(completion.status));
    return 1;
  }
  struct Receipt* back = (struct Receipt*)(uintptr_t)completion.wr_id;
  say("one message of %" PRIu32 " bytes has arrived", completion.byte_len);
  int is_good = is_message_in(parts, completion.byte_len) && back == &receipt;
  say("wr_id of the completion is %p: our \"%s\"", (void*)back, back == &receipt ? back->name : "?");

  rdma_disconnect(id);
  for (int i = 0; i < 3; ++i) {
    rdma_dereg_mr(parts[i].region);
    free(parts[i].bytes);
  }
  say(is_good ? "all as it should be" : "this is NOT the message that was sent");
  return is_good ? 0 : 1;
}

// `announce`: where to write the number of the port that we listen on, or -1.
static int run_receiver(const char* address, const char* port, int announce) {
  role = "receiver";
  struct rdma_cm_id* listener = create_endpoint(address, port, RAI_PASSIVE);
  check(rdma_listen(listener, 1) == 0, "rdma_listen");
  uint16_t number = ntohs(rdma_get_src_port(listener));
  say("listening on port %" PRIu16, number);
  if (announce >= 0) check(write(announce, &number, sizeof number) == sizeof number, "write");

  struct rdma_cm_id* id;
  check(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  int result = receive_one(id);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
  return result;
}

// ---------------------------------------------------------------- sender

static int run_sender(const char* address, const char* port) {
  role = "sender";
  struct rdma_cm_id* id = create_endpoint(address, port, 0);
  char buffer[sizeof kMessage];
  memcpy(buffer, kMessage, sizeof kMessage);
  struct ibv_mr* region = rdma_reg_msgs(id, buffer, sizeof buffer);
  check(region != NULL, "rdma_reg_msgs");
  check(rdma_connect(id, NULL) == 0, "rdma_connect");
  say("connected to %s port %s", address, port);

  check(rdma_post_send(id, NULL, buffer, strlen(buffer), region, 0) == 0, "rdma_post_send");
  struct ibv_wc completion;
  check(rdma_get_send_comp(id, &completion) == 1, "rdma_get_send_comp");
  say("sent one message of %zu bytes from one buffer: %s", strlen(buffer), ibv_wc_status_str(completion.status));

  rdma_disconnect(id);
  rdma_dereg_mr(region);
  rdma_destroy_ep(id);
  return completion.status == IBV_WC_SUCCESS ? 0 : 1;
}

// ---------------------------------------------------------------- both

// The processes part before either has called verbs: what one opens is of no use to the other.
static int run_both(void) {
  role = "recvv";
  int ports[2];
  check(pipe(ports) == 0, "pipe");
  pid_t receiver = fork();
  check(receiver >= 0, "fork");
  if (receiver == 0) {
    close(ports[0]);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // where the sender fails nobody would ever come
    return run_receiver("127.0.0.1", "0", ports[1]);
  }
  close(ports[1]);
  uint16_t number;
  if (read(ports[0], &number, sizeof number) != sizeof number) return 1;  // the receiver has failed, and said so
  char port[8];
  snprintf(port, sizeof port, "%" PRIu16, number);
  if (run_sender("127.0.0.1", port) != 0) return 1;
  int status;
  check(waitpid(receiver, &status, 0) == receiver, "waitpid");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* port = "7471";
  const char* peer = NULL;
  int is_receiver = 0;
  for (int option; (option = getopt(argc, argv, "sc:p:")) != -1;) {
    if (option == 's') {
      is_receiver = 1;
    } else if (option == 'c') {
      peer = optarg;
    } else if (option == 'p') {
      port = optarg;
    } else {
      fprintf(stderr, "usage: recvv | recvv -s [-p PORT] | recvv -c ADDR [-p PORT]\n");
      return 2;
    }
  }
  if (is_receiver) return run_receiver(NULL, port, -1);
  if (peer != NULL) return run_sender(peer, port);
  return run_both();
}
