// SPDX-License-Identifier: MIT
// Goal: the longest lists are sent, received, read into and flushed without an allocation. One that failed in
// the progress thread would end the program. Method: this program counts what operator new is asked for while either
// engine works on a long list; a short one of its kind has gone before, so that the engines have their rings.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "tests/sim/pair.h"
#include "wire/packet/icrc.h"

namespace {

std::size_t allocations = 0;  // of this program, ever

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace nicless::sim {
namespace {

using queue::SendOpcode;

constexpr std::uint64_t kReceives = 4;
constexpr std::size_t kPieceBytes = 5;
constexpr std::size_t kListBytes = queue::kSgeMax * kPieceBytes;
constexpr std::size_t kGrhBytes = 40;

// As many pieces as a list may have, the first of them longer by so much.
std::vector<queue::Sge> long_list(const Buffer& buffer, std::size_t more = 0) {
  std::vector<queue::Sge> list{buffer.sge(0, more + kPieceBytes)};
  while (list.size() < queue::kSgeMax) list.push_back(buffer.sge(more + list.size() * kPieceBytes, kPieceBytes));
  return list;
}

struct Counted {
  explicit Counted(const SideConfig& config = {}) : pair(config) {
    for (std::uint64_t i = 0; i < kReceives; ++i) REQUIRE(pair.b.post_recv(i, long_list(to, kGrhBytes)).has_value());
    REQUIRE(pair.a.post_recv(0, long_list(from, kGrhBytes)).has_value());
    wqe.datagram.local_gid = pair.a.endpoint().address.bytes;
    wqe.datagram.remote_gid = pair.b.endpoint().address.bytes;
    wqe.datagram.remote_qpn = pair.b.qpn();
    wqe.datagram.remote_qkey = ConnectionConfig().qkey;
    wqe.remote_addr = to.address();
    wqe.rkey = to.rkey();
    post_short(SendOpcode::Send);
    REQUIRE(pair.b.poll_recv().size() == 1);
  }

  void post(SendOpcode opcode) { post(opcode, list); }
  void post_short(SendOpcode opcode) {
    post(opcode, std::span(list).first(1));
    static_cast<void>(carry());
  }
  // What the engines allocate until both are silent.
  std::size_t carry() {
    std::size_t count = 0;
    while (carry(pair.a_engine, pair.b_engine, count) || carry(pair.b_engine, pair.a_engine, count)) {
    }
    return count;
  }
  template <typename Work>
  static auto counted(std::size_t& count, Work work) {
    const std::size_t before = allocations;
    const auto result = work();
    count += allocations - before;
    return result;
  }

  ExactPair pair;
  Buffer from = pair.a.make_buffer(kGrhBytes + kListBytes);
  Buffer to = pair.b.make_buffer(kGrhBytes + kListBytes);
  const std::vector<queue::Sge> list = long_list(from);
  queue::Wqe wqe;

 private:
  void post(SendOpcode opcode, std::span<const queue::Sge> sges) {
    wqe.opcode = opcode;
    wqe.sges = sges;
    REQUIRE(pair.a.post_send(pair.now, wqe).has_value());
  }
  bool carry(wire::Engine& out_of, wire::Engine& into, std::size_t& count) {
    bool is_any = false;
    wire::OutDatagram out;
    while (counted(count, [&] { return out_of.next_datagram(pair.now, out); })) {
      wire::seal(out, 0);
      const auto bytes = wire::to_bytes(out);
      counted(count, [&] { return into.on_datagram(pair.now, {bytes, out.from, out.to, {}}), true; });
      is_any = true;
    }
    counted(count, [&] { return out_of.on_sent(), true; });
    return is_any;
  }
};

SideConfig of(wire::Transport transport) {
  SideConfig config;
  config.transport = transport;
  return config;
}

TEST_CASE("the longest list is sent and received without an allocation, over every transport", "[allocations]") {
  Counted s(of(GENERATE(wire::Transport::Rc, wire::Transport::Uc, wire::Transport::Ud)));
  s.post(SendOpcode::Send);
  CHECK(s.carry() == 0);
  CHECK(s.pair.a.poll_send().back().status == queue::WcStatus::Success);
  CHECK(s.pair.b.poll_recv().size() == 1);
}

TEST_CASE("the longest list is taken from a shared receive queue without an allocation", "[allocations]") {
  auto events = *queue::open_event_fd();
  queue::AsyncEvents async_events(std::move(events));
  queue::SharedReceiveQueue shared(128, queue::kSgeMax, async_events, nullptr);
  SideConfig config;
  config.shared_receives = &shared;
  Counted s(config);
  s.post(SendOpcode::Send);
  CHECK(s.carry() == 0);
  CHECK(s.pair.b.poll_recv().size() == 1);
}

TEST_CASE("the longest list is written from and read into without an allocation", "[allocations]") {
  const auto opcode = GENERATE(SendOpcode::Write, SendOpcode::Read);
  Counted s;
  s.post_short(opcode);
  s.post(opcode);
  CHECK(s.carry() == 0);
  CHECK(s.pair.a.poll_send().back().status == queue::WcStatus::Success);
}

TEST_CASE("the longest lists are flushed without an allocation", "[allocations]") {
  Counted s;
  std::size_t count = 0;
  Counted::counted(count, [&] { return s.pair.b.to_state(s.pair.now, wire::QpState::Err).has_value(); });
  CHECK(count == 0);
  CHECK(s.pair.b.poll_recv().size() == kReceives - 1);
}

}  // namespace
}  // namespace nicless::sim
