// SPDX-License-Identifier: MIT
// Goal: what queue/ calls thread-safe is. Method: real threads on each class, in the roles that program, port holder
// and poller have; every thread ends by itself when its share is done, and the claims are about the sum of all shares.
// Run it under ThreadSanitizer (-Db_sanitize=thread), which sees what no claim can: an access without its lock.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "queue/completion_queue.h"
#include "queue/memory_region.h"
#include "queue/receive_queue.h"
#include "queue/send_queue.h"
#include "queue/shared_receive_queue.h"
#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

constexpr std::uint64_t kShare = 3000;  // of each thread
constexpr Qpn kQpn{7};
constexpr std::uint64_t kErased = 1'000'000;  // events from here on are nobody's

// Catch's assertions are for one thread: the others only count, and the claims come after the join.
void run_together(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  threads.reserve(bodies.size());
  for (const auto& body : bodies) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::uint64_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint64_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

// Polls what is there; how many were new in `wr_ids`.
std::size_t poll_into(CompletionQueue& cq, std::vector<std::uint64_t>& wr_ids) {
  std::array<ibv_wc, 16> wc;
  const int count = cq.poll(wc);
  for (int i = 0; i < count; ++i) wr_ids.push_back(wc[static_cast<std::size_t>(i)].wr_id);
  if (count <= 0) std::this_thread::yield();
  return static_cast<std::size_t>(std::max(count, 0));
}

TEST_CASE("completions of three ports reach two pollers once each, none lost", "[queue][threads]") {
  CqFixture f(3 * kShare);
  std::atomic<std::uint64_t> polled{0};
  std::array<std::vector<std::uint64_t>, 2> seen;
  const auto port = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kShare; ++i) f.cq.push({.wr_id = first + i});
  };
  const auto poller = [&](std::size_t which) {
    while (polled.load() < 3 * kShare) polled += poll_into(f.cq, seen[which]);
  };
  run_together(
      {[&] { port(0); }, [&] { port(kShare); }, [&] { port(2 * kShare); }, [&] { poller(0); }, [&] { poller(1); }});
  std::vector<std::uint64_t> all = seen[0];
  all.insert(all.end(), seen[1].begin(), seen[1].end());
  CHECK(sorted(all) == first_numbers(3 * kShare));
  CHECK_FALSE(f.async_events.take());
}

TEST_CASE("who arms, polls and then waits misses no completion", "[queue][threads]") {
  CqFixture f(2 * kShare);
  std::vector<std::uint64_t> seen;
  const auto port = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kShare; ++i) f.cq.push({.wr_id = first + i});
  };
  const auto program = [&] {
    while (seen.size() < 2 * kShare) {
      f.cq.arm(false);
      std::size_t polled = 0;
      while (const std::size_t more = poll_into(f.cq, seen)) polled += more;
      if (polled == 0) f.channel.wait().value();
    }
  };
  run_together({[&] { port(0); }, [&] { port(kShare); }, program});
  CHECK(sorted(seen) == first_numbers(2 * kShare));
}

TEST_CASE("lists posted by the program are taken in order while others complete and poll them", "[queue][threads]") {
  CqFixture f(8);
  ReceiveQueue rq(8, 2, f.cq, kQpn);
  std::vector<std::uint64_t> taken;
  std::vector<std::uint64_t> polled;
  bool lists_are_whole = true;
  const auto program = [&] {
    for (std::uint64_t i = 0; i < kShare; ++i) {
      const std::array<Sge, 2> list{{{.addr = i, .length = 1, .lkey = LKey{1}}, {.addr = ~i, .length = 2, .lkey = {}}}};
      while (!rq.post(i, list)) std::this_thread::yield();
    }
  };
  const auto port = [&] {
    RecvWqe wqe;
    while (taken.size() < kShare) {
      if (!rq.take(wqe)) {
        std::this_thread::yield();
        continue;
      }
      taken.push_back(wqe.wr_id);
      lists_are_whole &= wqe.sges().size() == 2 && wqe.sges()[0].addr == wqe.wr_id && wqe.sges()[1].addr == ~wqe.wr_id;
      f.cq.push({.wr_id = wqe.wr_id, .opcode = WcOpcode::Recv, .credit = &rq.credit(), .credit_count = 1});
    }
  };
  const auto poller = [&] {
    while (polled.size() < kShare) poll_into(f.cq, polled);
  };
  run_together({program, port, poller});
  CHECK(taken == first_numbers(kShare));
  CHECK(polled == first_numbers(kShare));
  CHECK(lists_are_whole);
  CHECK_FALSE(f.async_events.take());
}

TEST_CASE("a shared queue gives each list to one port, and warns once", "[queue][threads]") {
  AsyncEvents events(open_event_fd().value());
  SharedReceiveQueue srq(64, 1, events, &events);
  srq.set_limit(1).value();
  std::array<std::vector<std::uint64_t>, 2> taken;
  std::atomic<std::uint64_t> taken_count{0};
  const auto program = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kShare; ++i) {
      while (!srq.post(first + i, {})) std::this_thread::yield();
    }
  };
  const auto port = [&](std::size_t which) {
    RecvWqe wqe;
    while (taken_count.load() < 2 * kShare) {
      if (!srq.take(wqe)) {
        std::this_thread::yield();
        continue;
      }
      taken[which].push_back(wqe.wr_id);
      ++taken_count;
      srq.credit().release(1);
    }
  };
  run_together({[&] { program(0); }, [&] { program(kShare); }, [&] { port(0); }, [&] { port(1); }});
  std::vector<std::uint64_t> all = taken[0];
  all.insert(all.end(), taken[1].begin(), taken[1].end());
  CHECK(sorted(all) == first_numbers(2 * kShare));
  CHECK(events.take() == AsyncEvent{.type = AsyncType::SrqLimitReached, .handle = &events});
  CHECK_FALSE(events.take());
}

TEST_CASE("a send queue's room follows a poller in another thread, never more than its depth", "[queue][threads]") {
  constexpr std::uint32_t kDepth = 16;
  CqFixture f(kDepth);
  SendQueue sq({.depth = kDepth, .sge_max = 1}, f.cq, kQpn);
  std::vector<std::uint64_t> polled;
  const auto port = [&] {
    for (std::uint64_t i = 0; i < kShare;) {
      if (sq.post({.wr_id = i, .signaled = i % 4 == 3})) {
        ++i;
      } else {
        std::this_thread::yield();
      }
      while (!sq.empty()) sq.retire(WcStatus::Success);
    }
  };
  const auto poller = [&] {
    while (polled.size() < kShare / 4) poll_into(f.cq, polled);
  };
  run_together({port, poller});
  CHECK(polled.size() == kShare / 4);
  CHECK(polled.back() == kShare - 1);
  CHECK_FALSE(f.async_events.take());
}

TEST_CASE("a reset beside a poller leaves exactly the whole room", "[queue][threads]") {
  constexpr std::uint32_t kDepth = 8;
  CqFixture f(kDepth);
  ReceiveQueue rq(kDepth, 1, f.cq, kQpn);
  std::atomic<bool> is_done{false};
  std::uint64_t refused = 0;
  std::uint64_t accepted_above_depth = 0;
  const auto program = [&] {
    for (int round = 0; round < 500; ++round) {
      for (std::uint64_t i = 0; i < kDepth; ++i) refused += rq.post(i, {}).has_error() ? 1 : 0;
      accepted_above_depth += rq.post(kDepth, {}).has_value() ? 1 : 0;
      rq.flush();
      rq.reset();
    }
    is_done = true;
  };
  const auto poller = [&] {
    std::vector<std::uint64_t> ignored;
    while (!is_done.load()) poll_into(f.cq, ignored);
  };
  run_together({program, poller});
  CHECK(refused == 0);
  CHECK(accepted_above_depth == 0);
}

TEST_CASE("events reach blocked waiters once each, while others erase", "[queue][threads]") {
  EventList<std::uint64_t> list(open_event_fd().value());
  std::array<std::vector<std::uint64_t>, 3> seen;
  std::atomic<std::size_t> erased{0};
  const auto pusher = [&](std::uint64_t first) {
    for (std::uint64_t i = 0; i < kShare; ++i) list.push(first + i);
  };
  const auto waiter = [&](std::size_t which) {
    while (seen[which].size() < 2 * kShare / 3) {
      const std::uint64_t event = list.wait().value();
      if (event < kErased) {
        seen[which].push_back(event);
      } else {
        ++erased;
      }
    }
  };
  const auto eraser = [&] {
    for (std::uint64_t i = 0; i < kShare; ++i) {
      list.push(kErased + i);
      erased += list.erase_if([](std::uint64_t event) { return event >= kErased; });
    }
  };
  run_together({[&] { pusher(0); }, [&] { pusher(kShare); }, [&] { waiter(0); }, [&] { waiter(1); }, [&] { waiter(2); },
                eraser});
  std::vector<std::uint64_t> all;
  for (const auto& part : seen) all.insert(all.end(), part.begin(), part.end());
  erased += list.erase_if([](std::uint64_t event) { return event >= kErased; });
  CHECK(sorted(all) == first_numbers(2 * kShare));
  CHECK(erased == kShare);
  CHECK(list.empty());
}

// As ibv_dereg_mr promises: remove() and then one pass through the port's lock, and nothing touches the memory any
// more. The port reads each region that it finds; ThreadSanitizer and AddressSanitizer see a read after the delete.
TEST_CASE("memory may be freed once its region is removed and the port's lock was passed", "[queue][threads]") {
  constexpr int kRounds = 400;
  constexpr std::uint64_t kBytes = 64;
  MrTable table(1);
  Mutex port_lock;
  std::atomic<std::uint64_t> known_rkey{0};
  std::atomic<std::uint64_t> known_address{0};
  std::atomic<bool> is_done{false};
  std::uint64_t wrong_bytes = 0;
  std::uint64_t wrong_faults = 0;
  const auto program = [&] {
    for (int round = 0; round < kRounds; ++round) {
      const auto memory = std::make_unique<std::array<std::byte, kBytes>>();
      memory->fill(std::byte{0x5a});
      const auto address = reinterpret_cast<std::uintptr_t>(memory->data());
      const MemoryKeys keys = table.add(PdId{1}, memory->data(), address, kBytes, kAccessRemoteRead).value();
      known_address = address;
      known_rkey = keys.rkey.value();
      std::this_thread::yield();
      table.remove(keys.lkey);
      { MutexLock lock(port_lock); }
      memory->fill(std::byte{});
    }
    is_done = true;
  };
  const auto port = [&] {
    while (!is_done.load()) {
      std::this_thread::yield();
      MutexLock lock(port_lock);
      const RKey rkey{static_cast<std::uint32_t>(known_rkey.load())};
      const Access found = table.find_remote(PdId{1}, rkey, known_address.load(), kBytes, kAccessRemoteRead);
      if (found) {
        for (std::uint64_t i = 0; i < kBytes; ++i) wrong_bytes += found.pointer[i] == std::byte{0x5a} ? 0 : 1;
      } else {
        // The key and the address are read one after the other, so they may belong to different rounds.
        wrong_faults += found.fault != AccessFault::UnknownKey && found.fault != AccessFault::OutOfBounds ? 1 : 0;
      }
    }
  };
  run_together({program, port});
  CHECK(wrong_bytes == 0);
  CHECK(wrong_faults == 0);
  CHECK(table.size() == 0);
}

TEST_CASE("keys handed out to several threads at once are all different", "[queue][threads]") {
  MrTable table(1);
  static std::array<std::byte, 4096> memory{};
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  std::array<std::vector<std::uint64_t>, 3> keys;
  const auto program = [&](std::size_t which) {
    for (int i = 0; i < 300; ++i) {
      const MemoryKeys made = table.add(PdId{1}, memory.data(), address, 4096, kAccessLocalWrite).value();
      keys[which].push_back(made.lkey.value());
      keys[which].push_back(made.rkey.value());
    }
  };
  run_together({[&] { program(0); }, [&] { program(1); }, [&] { program(2); }});
  std::vector<std::uint64_t> all;
  for (const auto& part : keys) all.insert(all.end(), part.begin(), part.end());
  all = sorted(all);
  CHECK(all.size() == 1800);
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  CHECK(table.size() == 900);
}

}  // namespace
}  // namespace nicless::queue
