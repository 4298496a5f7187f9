// SPDX-License-Identifier: MIT
// Goal: ten thousand connections between two processes are set up, used and torn down, none of them costs a
// descriptor, and what an idle one costs is known. Method: a child connects to its parent as often as it is told,
// with one CQ for all at each end; then a message goes over each connection, and each is disconnected. Exit status 0:
// all as it should be. Prints what was measured; nothing passes or fails by time.
//
//   many_connections [CONNECTIONS]
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

constexpr int kQueuePairsPerSocket = 256;
constexpr int kOtherDescriptors = 32;
constexpr int kBytes = 64;

void check(bool holds, const char* what) {
  if (holds) return;
  std::perror(what);
  std::_Exit(1);
}

long memory_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  long kib = 0;
  while (status >> word)
    if (word == "VmRSS:") status >> kib;
  return kib;
}

int descriptors() {
  const std::filesystem::directory_iterator open_files("/proc/self/fd");
  return static_cast<int>(std::distance(begin(open_files), end(open_files)));
}

// One end of all connections.
struct End {
  explicit End(const char* its_name, int connections) : name(its_name), count(connections) {
    channel = rdma_create_event_channel();
    check(channel != nullptr, "rdma_create_event_channel");
    began = std::chrono::steady_clock::now();
  }

  // Timewaits end when they end, which nobody here waits for.
  rdma_cm_event next() const {
    for (;;) {
      rdma_cm_event* event = nullptr;
      check(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
      const rdma_cm_event seen = *event;
      rdma_ack_cm_event(event);
      if (seen.event != RDMA_CM_EVENT_TIMEWAIT_EXIT) return seen;
    }
  }
  void next(rdma_cm_event_type type) const {
    const rdma_cm_event seen = next();
    if (seen.event == type && seen.status == 0) return;
    std::fprintf(stderr, "%s: %s, status %d, instead of %s\n", name, rdma_event_str(seen.event), seen.status,
                 rdma_event_str(type));
    std::_Exit(1);
  }

  // The first id's device is that of all.
  void add_queue_pair(rdma_cm_id* id) {
    if (cq == nullptr) {
      cq = ibv_create_cq(id->verbs, 2 * count, nullptr, nullptr, 0);
      mr = rdma_reg_msgs(id, buffer, sizeof buffer);
      check(cq != nullptr && mr != nullptr, "a CQ and a region");
      memory_before = memory_kib();
      descriptors_before = descriptors();
    }
    ibv_qp_init_attr attr{};
    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    attr.sq_sig_all = 1;
    check(rdma_create_qp(id, nullptr, &attr) == 0, "rdma_create_qp");
    ids.push_back(id);
  }

  void step(const char* what) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - began).count();
    std::printf("%s: %-12s %6.2f s\n", name, what, seconds);
    std::fflush(stdout);
    began = now;
  }

  void measure() {
    const int more = descriptors() - descriptors_before;
    const double kib = static_cast<double>(memory_kib() - memory_before) / count;
    std::printf("%s: %d idle connections of %.1f KiB each, %d more descriptors\n", name, count, kib, more);
    if (more <= count / kQueuePairsPerSocket + kOtherDescriptors) return;
    std::fprintf(stderr, "%s: connections cost descriptors\n", name);
    std::_Exit(1);
  }

  void complete(int wanted) const {
    ibv_wc wc[16];
    while (wanted > 0) {
      const int polled = ibv_poll_cq(cq, 16, wc);
      check(polled >= 0, "ibv_poll_cq");
      for (int i = 0; i < polled; ++i) check(wc[i].status == IBV_WC_SUCCESS, "a message failed");
      wanted -= polled;
    }
  }

  ~End() { rdma_destroy_event_channel(channel); }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void tear_down() {
    for (rdma_cm_id* id : ids) check(rdma_disconnect(id) == 0, "rdma_disconnect");
    for (int i = 0; i < count; ++i) next(RDMA_CM_EVENT_DISCONNECTED);
    step("disconnected");
    for (rdma_cm_id* id : ids) {
      rdma_destroy_qp(id);
      check(rdma_destroy_id(id) == 0, "rdma_destroy_id");
    }
    check(ibv_destroy_cq(cq) == 0 && rdma_dereg_mr(mr) == 0, "a CQ and a region");
    step("destroyed");
  }

  const char* name;
  const int count;
  rdma_event_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<rdma_cm_id*> ids;
  char buffer[kBytes]{};
  long memory_before = 0;
  int descriptors_before = 0;
  std::chrono::steady_clock::time_point began;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Each tells the other that it is so far.
struct Pipes {
  int in;
  int out;
  void wait_for_other() const {
    char byte = 0;
    check(read(in, &byte, 1) == 1, "the other end is gone");
  }
  void tell_other() const { check(write(out, "", 1) == 1, "the other end is gone"); }
};

void run_client(int count, const Pipes& server_end) {
  std::uint16_t port = 0;
  check(read(server_end.in, &port, sizeof port) == sizeof port, "the server is gone");
  End end("client", count);
  sockaddr_in server = loopback(port);
  for (int i = 0; i < count; ++i) {
    rdma_cm_id* id = nullptr;
    check(rdma_create_id(end.channel, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
    check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&server), 1000) == 0, "rdma_resolve_addr");
    end.next(RDMA_CM_EVENT_ADDR_RESOLVED);
    check(rdma_resolve_route(id, 1000) == 0, "rdma_resolve_route");
    end.next(RDMA_CM_EVENT_ROUTE_RESOLVED);
    end.add_queue_pair(id);
  }
  end.step("resolved");
  for (rdma_cm_id* id : end.ids) check(rdma_connect(id, nullptr) == 0, "rdma_connect");
  for (int i = 0; i < count; ++i) end.next(RDMA_CM_EVENT_ESTABLISHED);
  end.step("connected");
  end.measure();
  server_end.wait_for_other();
  for (rdma_cm_id* id : end.ids) {
    check(rdma_post_send(id, nullptr, end.buffer, kBytes, end.mr, 0) == 0, "rdma_post_send");
  }
  end.complete(count);
  end.step("used");
  server_end.wait_for_other();
  end.tear_down();
}

void run_server(int count, const Pipes& client_end) {
  End end("server", count);
  rdma_cm_id* listener = nullptr;
  sockaddr_in here = loopback(0);
  check(rdma_create_id(end.channel, &listener, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  check(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&here)) == 0, "rdma_bind_addr");
  check(rdma_listen(listener, 0) == 0, "rdma_listen");
  const std::uint16_t port = ntohs(rdma_get_src_port(listener));
  check(write(client_end.out, &port, sizeof port) == sizeof port, "the client is gone");
  for (int established = 0; established < count;) {
    const rdma_cm_event event = end.next();
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      end.add_queue_pair(event.id);
      check(rdma_post_recv(event.id, nullptr, end.buffer, kBytes, end.mr) == 0, "rdma_post_recv");
      check(rdma_accept(event.id, nullptr) == 0, "rdma_accept");
    } else {
      check(event.event == RDMA_CM_EVENT_ESTABLISHED, rdma_event_str(event.event));
      ++established;
    }
  }
  end.step("connected");
  end.measure();
  client_end.tell_other();
  end.complete(count);
  end.step("used");
  client_end.tell_other();
  end.tear_down();
  check(rdma_destroy_id(listener) == 0, "rdma_destroy_id");
}

}  // namespace

// The processes part before either has called anything of RDMA.
int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 10000;
  int to_client[2];
  int to_server[2];
  check(pipe(to_client) == 0 && pipe(to_server) == 0, "pipe");
  const pid_t child = fork();
  check(child >= 0, "fork");
  const bool is_client = child == 0;
  close(is_client ? to_client[1] : to_client[0]);
  close(is_client ? to_server[0] : to_server[1]);
  if (is_client) {
    run_client(count, {.in = to_client[0], .out = to_server[1]});
    return 0;
  }
  run_server(count, {.in = to_server[0], .out = to_client[1]});
  int status = 0;
  check(waitpid(child, &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
