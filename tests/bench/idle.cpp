// SPDX-License-Identifier: MIT
// A program with an open device that waits: what do its threads and its memory cost? tests/bench/run looks at it from
// outside.
//
//   nicless run -- idle [QUEUE_PAIRS]
//
// Makes so many RC queue pairs of depth 16 (none: the device alone), connects each two to each other, lets each send
// one message of 64 bytes and receive one, arms the completion channel, prints
//
//     resident_bytes_per_queue_pair N     (what the second half of them added to the resident memory)
//     idle
//
// and waits for a signal to end it.
#include <unistd.h>

#include "tests/bench/verbs_end.h"

namespace nicless::bench {
namespace {

constexpr std::size_t kMessageBytes = 64;

void send_one(Verbs& verbs, ibv_qp* from, ibv_qp* to) {
  post_receive(to, piece(verbs, kMessageBytes, kMessageBytes), 0);
  post_send(from, piece(verbs, 0, kMessageBytes));
  ibv_wc wc{};
  for (int completions = 0; completions < 2;) completions += poll_one(verbs, wc) ? 1 : 0;
}

std::size_t resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  check(file != nullptr, "/proc/self/statm");
  std::size_t pages_in_all = 0;
  std::size_t resident_pages = 0;
  check(std::fscanf(file, "%zu %zu", &pages_in_all, &resident_pages) == 2, "/proc/self/statm");
  std::fclose(file);
  return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void run(int queue_pairs) {
  Verbs verbs;
  open_device(verbs);
  if (queue_pairs > 0) make_objects(verbs, 2 * kMessageBytes, 2 * kDepth);
  std::size_t half_way = resident_bytes();
  for (int made = 0; made < queue_pairs; made += 2) {
    if (made == queue_pairs / 2 / 2 * 2) half_way = resident_bytes();
    ibv_qp* const a = make_queue_pair(verbs);
    ibv_qp* const b = make_queue_pair(verbs);
    connect_queue_pair(verbs, a, verbs.gid, b->qp_num);
    connect_queue_pair(verbs, b, verbs.gid, a->qp_num);
    send_one(verbs, a, b);
    send_one(verbs, b, a);
  }
  if (queue_pairs > 0) {
    check(ibv_req_notify_cq(verbs.cq, 0) == 0, "ibv_req_notify_cq");
    const auto counted = static_cast<std::size_t>(queue_pairs - queue_pairs / 2 / 2 * 2);
    std::printf("resident_bytes_per_queue_pair %zu\n", (resident_bytes() - half_way) / counted);
  }
  std::printf("idle\n");
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "idle [QUEUE_PAIRS]");
  const int queue_pairs = arguments.number(0);
  arguments.expect_no_more();
  nicless::bench::run(queue_pairs / 2 * 2);
}
