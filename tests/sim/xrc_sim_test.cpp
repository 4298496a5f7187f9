// SPDX-License-Identifier: MIT
// Goal: whatever the network does, each message of an XRC initiator reaches the SRQ that it names, once and in order,
// and an atomic is carried out once. Method: seeded loss, duplication, reordering and corruption in virtual time; two
// SRQs whose lists are posted late; everything compared at the end.
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "queue/rng.h"
#include "tests/queue/print.h"
#include "tests/sim/side.h"
#include "tests/sim/world.h"

namespace nicless::sim {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kMessages = 60;
constexpr std::size_t kSlotBytes = 4096;  // of one message, at either end
constexpr std::uint64_t kSeeds = 25;
constexpr queue::Duration kLimit = std::chrono::seconds(3000);

constexpr wire::LinkConfig kBadNetwork{.latency = microseconds(5),
                                       .loss = 0.05,
                                       .duplicate = 0.05,
                                       .reorder = 0.05,
                                       .reorder_delay = microseconds(100),
                                       .corrupt = 0.02};

// One SRQ at the target's end and what has to arrive there.
struct Queue {
  Queue(Side& side, queue::XrcDomain& domain, queue::Srqn the_srqn)
      : srqn(the_srqn),
        srq(kMessages, 1, side.async_events(), this),
        cq(kMessages, nullptr, side.async_events(), &cq),
        landing(side.make_buffer(kMessages * kSlotBytes)) {
    domain.add(srqn, {&srq, &cq, &side.regions(), side.pd()});
  }
  void post_one() {
    const queue::Sge list = landing.sge(posted * kSlotBytes, kSlotBytes);
    REQUIRE(srq.post(posted++, std::span(&list, 1)));
  }
  const queue::Srqn srqn;
  queue::SharedReceiveQueue srq;
  queue::CompletionQueue cq;
  Buffer landing;
  std::size_t posted = 0;
  std::vector<std::size_t> sent;  // the messages for it, by number
};

struct XrcWorld {
  explicit XrcWorld(std::uint64_t seed)
      : rng(seed),
        world(seed, kBadNetwork),
        a(world.engine(0), world.endpoint(0), {.transport = wire::Transport::XrcInitiator}, seed * 2 + 1),
        b(world.engine(1), world.endpoint(1), {.transport = wire::Transport::XrcTarget, .xrc_domain = &domain},
          seed * 2 + 2) {
    const ConnectionConfig config{.a_psn = 0xfffff0};
    a.connect(world.now(), b, config, config.a_psn, config.b_psn);
    b.connect(world.now(), a, config, config.b_psn, config.a_psn);
    for (std::byte& byte : source.bytes()) byte = static_cast<std::byte>(rng.next_u32());
    std::memset(counter.bytes().data(), 0, counter.bytes().size());
  }

  void post(std::size_t number) {
    Queue& to = queues[rng.below(2)];
    const queue::Sge list = source.sge(number * kSlotBytes, 1 + rng.below(kSlotBytes));
    queue::Wqe wqe;
    wqe.wr_id = number;
    wqe.remote_srqn = to.srqn;
    wqe.opcode = queue::SendOpcode::SendImm;
    wqe.imm_or_key = static_cast<std::uint32_t>(list.length);
    wqe.sges = std::span(&list, 1);
    if (rng.chance(0.2)) {
      const queue::Sge result = results.sge(number * 8, 8);
      wqe.opcode = queue::SendOpcode::FetchAdd;
      wqe.remote_addr = counter.address();
      wqe.rkey = counter.rkey();
      wqe.compare_add = 1;
      wqe.sges = std::span(&result, 1);
      ++atomics;
      REQUIRE(a.post_send(world.now(), wqe));
    } else {
      to.sent.push_back(number);
      REQUIRE(a.post_send(world.now(), wqe));
    }
    world.flush(0);
  }

  // Posts a list now and then, late more often than not.
  void run() {
    for (std::size_t number = 0; number < kMessages; ++number) post(number);
    while (!a.send_queue().empty()) {
      for (Queue& queue : queues) {
        if (queue.posted < queue.sent.size() && rng.chance(0.02)) queue.post_one();
      }
      if (!world.step()) world.fail("nothing happens any more, and messages are left");
    }
    world.run_until_idle(kLimit);
  }

  void check(Queue& queue) {
    std::vector<ibv_wc> wcs(kMessages + 1);
    REQUIRE(queue.cq.poll(wcs) == static_cast<int>(queue.sent.size()));
    for (std::size_t i = 0; i < queue.sent.size(); ++i) {
      CHECK(wcs[i].status == IBV_WC_SUCCESS);
      CHECK(wcs[i].wr_id == i);
      CHECK(wcs[i].byte_len == wcs[i].imm_data);
      CHECK(std::memcmp(&queue.landing.bytes()[i * kSlotBytes], &source.bytes()[queue.sent[i] * kSlotBytes],
                        wcs[i].byte_len) == 0);
    }
  }

  queue::Rng rng;
  World world;
  queue::XrcDomain domain;
  Side a;
  Side b;
  Buffer source = a.make_buffer(kMessages * kSlotBytes);
  Buffer results = a.make_buffer(kMessages * 8);
  Buffer counter = b.make_buffer(8);
  Queue queues[2] = {{b, domain, queue::Srqn(0x8f1203)}, {b, domain, queue::Srqn(0x8f1204)}};
  std::uint64_t atomics = 0;
};

TEST_CASE("messages for two SRQs over a bad network arrive once and in order, each where it belongs", "[xrc][sim]") {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    XrcWorld run(seed);
    run.run();
    CHECK(run.a.poll_send().size() == kMessages);
    for (Queue& queue : run.queues) run.check(queue);
    std::uint64_t count = 0;
    std::memcpy(&count, run.counter.bytes().data(), sizeof count);
    CHECK(count == run.atomics);
  }
}

}  // namespace
}  // namespace nicless::sim
