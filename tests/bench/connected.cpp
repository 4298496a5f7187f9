// SPDX-License-Identifier: MIT
// Two processes with an rdma_cm connection that nothing is sent over: how often does it wake each of them up?
//
//   nicless run -- connected [SECONDS]
//
// The first process listens on a loopback port of the system's choice, its child connects. Both rest for so many
// seconds (20), and print the voluntary context switches of all their threads meanwhile:
//
//     connected: 1.00 wake-ups a second
//     accepted: 1.00 wake-ups a second
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/bench/loopback.h"

namespace nicless::bench {
namespace {

rdma_cm_id* make_end(const char* port, int flags) {
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  check(rdma_getaddrinfo("127.0.0.1", port, &hints, &found) == 0, "rdma_getaddrinfo");
  ibv_qp_init_attr attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {1, 1, 1, 1, 0};
  rdma_cm_id* id = nullptr;
  check(rdma_create_ep(&id, found, nullptr, &attributes) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

long voluntary_switches() {
  rusage used{};
  check(getrusage(RUSAGE_SELF, &used) == 0, "getrusage");
  return used.ru_nvcsw;
}

void pause_for(int seconds) {
  check(poll(nullptr, 0, seconds * 1000) == 0, "poll");
}

void rest(const char* end, int seconds) {
  pause_for(3);  // the watch has begun, and what the start had of timers is over
  const long before = voluntary_switches();
  pause_for(seconds);
  const long own = 1;  // this wait's
  std::printf("%s: %.2f wake-ups a second\n", end, static_cast<double>(voluntary_switches() - before - own) / seconds);
  pause_for(1);  // the end that is done first would wake up the other one by going
}

// The processes part before either has called anything of RDMA.
void run(int seconds) {
  int pipe_ends[2];
  check(pipe(pipe_ends) == 0, "pipe");
  const pid_t child = fork();
  check(child >= 0, "fork");
  std::uint16_t port = 0;
  if (child == 0) {
    check(read(pipe_ends[0], &port, sizeof port) == sizeof port, "read");
    check(rdma_connect(make_end(std::to_string(port).c_str(), 0), nullptr) == 0, "rdma_connect");
    return rest("connected", seconds);
  }
  rdma_cm_id* const listener = make_end("0", RAI_PASSIVE);
  check(rdma_listen(listener, 1) == 0, "rdma_listen");
  port = ntohs(rdma_get_src_port(listener));
  check(write(pipe_ends[1], &port, sizeof port) == sizeof port, "write");
  rdma_cm_id* requested = nullptr;
  check(rdma_get_request(listener, &requested) == 0, "rdma_get_request");
  check(rdma_accept(requested, nullptr) == 0, "rdma_accept");
  rest("accepted", seconds);
  check(waitpid(child, nullptr, 0) == child, "waitpid");
}

}  // namespace
}  // namespace nicless::bench

int main(int argc, char** argv) {
  nicless::bench::Arguments arguments(argc, argv, "connected [SECONDS]");
  const int seconds = arguments.number(20);
  arguments.expect_no_more();
  nicless::bench::run(seconds);
}
