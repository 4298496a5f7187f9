// SPDX-License-Identifier: MIT
// Many sending processes and one that receives: do their windows together, many times what the receiver's socket buffer
// holds, bring everything to a stand of losses and resends?
//
//   nicless run -- incast [SENDERS [MEGABYTES [BYTES]]]
//
// Each sender is a process with one RC queue pair; the receiver has as many, on one socket. All start at once, keep
// depth 16 full and poll. Prints the mebibytes per second that the receiver got in all, and how long the first and the
// last sender took for their share of the megabytes. Gives up after a minute.
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "tests/bench/verbs_end.h"

namespace nicless::bench {
namespace {

constexpr unsigned kSecondsMax = 60;

struct Config {
  int senders = 32;
  std::size_t message_bytes = 65536;
  int messages_each = 0;
};

// What the ends tell each other through a socket pair.
struct Address {
  ibv_gid gid;
  std::uint32_t qpn;
};

template <typename T>
void tell(int fd, const T& value) {
  check(write(fd, &value, sizeof value) == static_cast<ssize_t>(sizeof value), "write");
}

template <typename T>
T hear(int fd) {
  T value;
  check(read(fd, &value, sizeof value) == static_cast<ssize_t>(sizeof value), "read");
  return value;
}

void exchange_and_connect(Verbs& verbs, ibv_qp* qp, int fd) {
  tell(fd, Address{verbs.gid, qp->qp_num});
  const auto peer = hear<Address>(fd);
  connect_queue_pair(verbs, qp, peer.gid, peer.qpn);
}

void send_all(const Config& config, int fd) {
  Verbs verbs;
  open_device(verbs);
  make_objects(verbs, config.message_bytes, kDepth);
  ibv_qp* const qp = make_queue_pair(verbs);
  exchange_and_connect(verbs, qp, fd);
  tell(fd, 'r');   // ready
  hear<char>(fd);  // go
  const double start = now_seconds();
  int posted = 0;
  ibv_wc wc{};
  for (int completed = 0; completed < config.messages_each;) {
    while (posted < config.messages_each && posted - completed < static_cast<int>(kDepth)) {
      post_send(qp, piece(verbs, 0, config.message_bytes));
      ++posted;
    }
    completed += poll_one(verbs, wc) ? 1 : 0;
  }
  tell(fd, now_seconds() - start);
  hear<char>(fd);  // all are done
}

void receive_all(const Config& config, const std::vector<int>& fds) {
  Verbs verbs;
  open_device(verbs);
  make_objects(verbs, config.message_bytes, kDepth * static_cast<std::uint32_t>(config.senders));
  std::vector<ibv_qp*> queue_pairs;
  for (const int fd : fds) {
    ibv_qp* const qp = queue_pairs.emplace_back(make_queue_pair(verbs));
    exchange_and_connect(verbs, qp, fd);
    for (std::uint32_t i = 0; i < kDepth; ++i) {
      post_receive(qp, piece(verbs, 0, config.message_bytes), queue_pairs.size() - 1);
    }
  }
  for (const int fd : fds) hear<char>(fd);
  for (const int fd : fds) tell(fd, 'g');
  const double start = now_seconds();
  const std::int64_t expected = std::int64_t{config.messages_each} * config.senders;
  ibv_wc wc{};
  for (std::int64_t received = 0; received < expected;) {
    if (!poll_one(verbs, wc)) continue;
    ++received;
    post_receive(queue_pairs[wc.wr_id], piece(verbs, 0, config.message_bytes), wc.wr_id);
  }
  const double took = now_seconds() - start;
  std::vector<double> times;
  for (const int fd : fds) times.push_back(hear<double>(fd));
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  std::printf("mebibytes_per_second %.1f\n",
              static_cast<double>(expected) * static_cast<double>(config.message_bytes) / took / (1 << 20));
  std::printf("first_sender_seconds %.3f\nlast_sender_seconds %.3f\n", *first, *last);
  for (const int fd : fds) tell(fd, 'd');
}

void run(const Config& config) {
  std::vector<int> fds;
  for (int i = 0; i < config.senders; ++i) {
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    const pid_t child = fork();
    check(child >= 0, "fork");
    if (child == 0) {
      alarm(kSecondsMax);
      for (const int fd : fds) close(fd);
      close(ends[0]);
      send_all(config, ends[1]);
      std::exit(0);
    }
    close(ends[1]);
    fds.push_back(ends[0]);
  }
  alarm(kSecondsMax);
  receive_all(config, fds);
  for (int status = 0; wait(&status) > 0;) check(status == 0, "a sender");
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "incast [SENDERS [MEGABYTES [BYTES]]]");
  nicless::bench::Config config;
  config.senders = arguments.number(config.senders);
  const std::size_t bytes = static_cast<std::size_t>(arguments.number(256)) << 20;
  config.message_bytes = static_cast<std::size_t>(arguments.number(65536));
  arguments.expect_no_more();
  const std::size_t each = bytes / config.message_bytes / static_cast<std::size_t>(config.senders);
  config.messages_each = static_cast<int>(std::max<std::size_t>(each, 1));
  nicless::bench::run(config);
}
