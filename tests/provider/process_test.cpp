// SPDX-License-Identifier: MIT
// Goal: after fork the parent's objects are dead in the child, which gets an errno and does not hang; the parent goes
// on as if nothing had happened; and a child that opens a device anew has an engine of its own. Method: children of
// this process report by their exit status; waiting for them is bounded by an alarm in the child.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <thread>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer's default is to end a child of a process with threads that starts a thread, which is what we test.
extern "C" const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace {

// Runs f in a forked child; its result is the child's exit status.
template <typename F>
int in_child(F&& f) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    _exit(f());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

bool exchange(Qp& a, Qp& b, Memory& memory, Cq& cq) {
  if (b.post_recv(1, {memory.sge(0, 100)}) != 0 || a.post_send(2, {memory.sge(1000, 100)}) != 0) return false;
  return cq.take().status == IBV_WC_SUCCESS && cq.take().status == IBV_WC_SUCCESS;
}

struct Whole {
  Whole() : cq(device), memory(device, 4096), a(device, rc_attr(cq.cq, cq.cq)), b(device, rc_attr(cq.cq, cq.cq)) {
    a.connect(b);
    b.connect(a);
  }
  Device device;
  Cq cq;
  Memory memory;
  Qp a;
  Qp b;
};

}  // namespace

TEST_CASE("what was made before a fork is dead in the child, with an errno", "[process]") {
  Whole whole;
  const int status = in_child([&] {
    ibv_wc wc;
    if (ibv_poll_cq(whole.cq.cq, 1, &wc) >= 0) return 1;
    if (whole.a.post_send(1, {}) != EIO) return 2;
    if (whole.a.post_recv(1, {}) != EIO) return 3;
    if (ibv_destroy_qp(whole.a.qp) != EIO) return 4;
    if (ibv_dereg_mr(whole.memory.mr) != EIO) return 5;
    if (ibv_alloc_pd(whole.device.context) != nullptr || errno != EIO) return 6;
    ibv_async_event event;
    if (ibv_get_async_event(whole.device.context, &event) != -1 || errno != EIO) return 7;
    return 0;
  });
  CHECK(status == 0);
  CHECK(exchange(whole.a, whole.b, whole.memory, whole.cq));
}

TEST_CASE("a child that opens the device anew works, beside its parent", "[process]") {
  Whole whole;
  const int status = in_child([&] {
    Whole fresh;
    return exchange(fresh.a, fresh.b, fresh.memory, fresh.cq) ? 0 : 1;
  });
  CHECK(status == 0);
  CHECK(exchange(whole.a, whole.b, whole.memory, whole.cq));
}

TEST_CASE("a child of a child works as well", "[process]") {
  Whole whole;
  const int status = in_child([] {
    Whole child;
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      alarm(20);
      Whole fresh;
      _exit(exchange(fresh.a, fresh.b, fresh.memory, fresh.cq) ? 0 : 1);
    }
    int inner = 0;
    if (waitpid(grandchild, &inner, 0) != grandchild || inner != 0) return 1;
    return exchange(child.a, child.b, child.memory, child.cq) ? 0 : 2;
  });
  CHECK(status == 0);
}

TEST_CASE("a child works though another thread of its parent's was looking at the devices when it forked",
          "[process]") {
  std::atomic<bool> is_done{false};
  std::thread lister([&] {
    while (!is_done) {
      if (ibv_device** list = ibv_get_device_list(nullptr)) ibv_free_device_list(list);
    }
  });
  int failed = 0;
  for (int i = 0; i < 200; ++i) {
    failed += in_child([] {
      ibv_device** list = ibv_get_device_list(nullptr);
      return list != nullptr && list[0] != nullptr ? 0 : 1;
    });
  }
  is_done = true;
  lister.join();
  CHECK(failed == 0);
}
