// SPDX-License-Identifier: MIT
// Goal: the calls that wait for events can be left by pthread_cancel, which programs use to end their event threads,
// and what they waited on can be destroyed afterwards, or even before: programs do that on their way out, and the
// thread sleeps on. Method: both libraries as a program links them; the thread is cancelled once it sleeps in the call.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>

#include "tests/support/asleep.h"

namespace {

struct Waiter {
  explicit Waiter(std::function<void()> wait) : call(std::move(wait)) { pthread_create(&thread, nullptr, run, this); }

  static void* run(void* argument) {
    auto* self = static_cast<Waiter*>(argument);
    self->id = static_cast<pid_t>(::syscall(SYS_gettid));
    self->call();
    return nullptr;
  }

  void await_sleep() const {
    while (id.load() == 0 || !nicless::tests::is_asleep(id.load())) sched_yield();
  }

  void* cancel_once_asleep() {
    await_sleep();
    pthread_cancel(thread);
    void* value = nullptr;
    pthread_join(thread, &value);
    return value;
  }

  std::function<void()> call;
  pthread_t thread{};
  std::atomic<pid_t> id{0};
};

TEST_CASE("a thread in rdma_get_cm_event can be cancelled", "[cm][waiting]") {
  rdma_event_channel* channel = rdma_create_event_channel();
  REQUIRE(channel != nullptr);
  Waiter waiter([&] {
    rdma_cm_event* event = nullptr;
    rdma_get_cm_event(channel, &event);
  });
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
  rdma_destroy_event_channel(channel);
}

struct Device {
  Device() {
    ibv_device** list = ibv_get_device_list(nullptr);
    REQUIRE(list != nullptr);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    REQUIRE(context != nullptr);
  }
  ~Device() { ibv_close_device(context); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context = nullptr;
};

TEST_CASE("a thread in ibv_get_cq_event can be cancelled", "[cm][waiting]") {
  const Device device;
  ibv_comp_channel* channel = ibv_create_comp_channel(device.context);
  REQUIRE(channel != nullptr);
  Waiter waiter([&] {
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    ibv_get_cq_event(channel, &cq, &cq_context);
  });
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

TEST_CASE("a thread in ibv_get_async_event can be cancelled", "[cm][waiting]") {
  const Device device;
  Waiter waiter([&] {
    ibv_async_event event;
    ibv_get_async_event(device.context, &event);
  });
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
}

TEST_CASE("an event channel is destroyed while a thread waits on it: the thread sleeps on", "[cm][waiting]") {
  rdma_event_channel* channel = rdma_create_event_channel();
  REQUIRE(channel != nullptr);
  Waiter waiter([&] {
    rdma_cm_event* event = nullptr;
    rdma_get_cm_event(channel, &event);
  });
  waiter.await_sleep();
  rdma_destroy_event_channel(channel);
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
}

TEST_CASE("a thread comes back to an event channel that has just been destroyed: it sleeps", "[cm][waiting]") {
  rdma_event_channel* channel = rdma_create_event_channel();
  REQUIRE(channel != nullptr);
  rdma_destroy_event_channel(channel);
  Waiter waiter([&] {
    rdma_cm_event* event = nullptr;
    rdma_get_cm_event(channel, &event);
  });
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
}

TEST_CASE("a device is closed while a thread waits for its events: the thread sleeps on", "[cm][waiting]") {
  auto device = std::make_unique<Device>();
  ibv_context* context = device->context;
  Waiter waiter([&] {
    ibv_async_event event;
    ibv_get_async_event(context, &event);
  });
  waiter.await_sleep();
  device.reset();
  CHECK(waiter.cancel_once_asleep() == PTHREAD_CANCELED);
}

}  // namespace
