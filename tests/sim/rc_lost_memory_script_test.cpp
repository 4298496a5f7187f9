// SPDX-License-Identifier: MIT
// Goal: memory that a program unmaps while it is registered fails the request that needs it, at both ends, and nothing
// else. Method: an ExactPair; a page of a region is taken away before the packet that touches it is built or arrives.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using wire::NakCode;
using wire::Op;
using wire::QpState;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

constexpr std::size_t kPage = 4096;

// Two pages that are registered, of which the second can be taken away.
class Pages {
 public:
  explicit Pages(Side& side)
      : start_(static_cast<std::byte*>(
            ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        keys_(side.regions()
                  .add(queue::PdId{1}, start_, address(0), 2 * kPage,
                       queue::kAccessLocalWrite | queue::kAccessRemoteWrite | queue::kAccessRemoteRead |
                           queue::kAccessRemoteAtomic)
                  .value()) {}
  ~Pages() { ::munmap(start_, 2 * kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::uint64_t address(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(start_ + offset); }
  queue::Sge sge(std::size_t offset, std::size_t length) const {
    return {address(offset), static_cast<std::uint32_t>(length), keys_.lkey};
  }
  queue::RKey rkey() const { return keys_.rkey; }
  void take_away() { ::munmap(start_ + kPage, kPage); }

 private:
  std::byte* start_;
  queue::MemoryKeys keys_;
};

struct LostMemory : Script {
  // A's request of B's pages.
  void post_remote(SendOpcode opcode, std::uint64_t wr_id, std::size_t offset, std::size_t length) {
    queue::Wqe wqe = request(opcode, wr_id, length);
    wqe.remote_addr = at_b.address(offset);
    wqe.rkey = at_b.rkey();
    REQUIRE(a.post_send(now, wqe));
  }
  // A's request with data from or for A's pages.
  void post_local(SendOpcode opcode, std::uint64_t wr_id, std::size_t offset, std::size_t length) {
    queue::Wqe wqe = request(opcode, wr_id, length);
    sge = at_a.sge(offset, length);
    REQUIRE(a.post_send(now, wqe));
  }
  // B has failed, tells why with this NAK, and A's request 1 fails; 2 is flushed.
  void check_refused(Packets answer, std::uint32_t psn, std::uint32_t msn) {
    REQUIRE(!answer.empty());
    CHECK(answer.back() == nak(NakCode::RemoteOperationalError, psn, msn));
    CHECK(b.qp().state() == QpState::Err);
    give_all(a, answer);
    CHECK(a.poll_send() == Wcs{failed(1, WcStatus::RemOpErr), failed(2, WcStatus::WrFlushErr)});
    CHECK(a.qp().state() == QpState::Err);
    CHECK(is_at_rest());
  }
  std::vector<queue::AsyncType> events_of_b() {
    std::vector<queue::AsyncType> types;
    while (const auto event = b.async_events().take()) types.push_back(event->type);
    return types;
  }

  Pages at_a{a};
  Pages at_b{b};
};

TEST_CASE("a receive whose memory is gone ends in LOC_PROT_ERR here and REM_OP_ERR there", "[rc][lost]") {
  const std::size_t length = GENERATE(100, 3000);
  LostMemory s;
  const queue::Sge list = s.at_b.sge(kPage - 50, length);
  REQUIRE(s.b.post_recv(7, {&list, 1}));
  s.post_recv(8, 100);
  s.at_b.take_away();
  s.post(SendOpcode::Send, 1, length);
  s.post(SendOpcode::Send, 2, 10);
  s.give(s.b, s.take(s.a)[0]);
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::LocProtErr), failed(8, WcStatus::WrFlushErr)});
  s.check_refused(s.take(s.b), kPsnA, 0);
  const auto reasons = s.b.qp().take_reasons();
  REQUIRE(reasons.size() == 1);
  CHECK_THAT(reasons[0], Catch::Contains("recv wr_id 0x7: sge[0]") &&
                             Catch::Contains("is registered, but the program has unmapped or protected the memory "
                                             "since; completes with LOC_PROT_ERR, the sender gets REM_OP_ERR"));
}

TEST_CASE("a write to memory that is gone is refused at the packet that meets it", "[rc][lost]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Write, SendOpcode::WriteImm);
  LostMemory s;
  s.post_recv(7, 0);
  s.at_b.take_away();
  s.post_remote(opcode, 1, kPage - 1500, 3000);
  s.post_remote(SendOpcode::Write, 2, 0, 10);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::WrFlushErr)});
  CHECK(s.events_of_b() == std::vector{queue::AsyncType::QpFatal});
  s.check_refused(s.take(s.b), kPsnA + 1, 0);
  const auto reasons = s.b.qp().take_reasons();
  REQUIRE(reasons.size() == 1);
  CHECK_THAT(reasons[0], Catch::Contains("received a write of 1024 bytes at 0x") &&
                             Catch::EndsWith("is registered, but the program has unmapped or protected the memory "
                                             "since; the sender gets REM_OP_ERR"));
}

TEST_CASE("a read of memory that is gone is answered up to there", "[rc][lost]") {
  LostMemory s;
  s.at_b.take_away();
  s.post_remote(SendOpcode::Read, 1, kPage - 1500, 3000);
  s.post_remote(SendOpcode::Write, 2, 0, 10);
  s.give(s.b, s.take(s.a)[0]);
  const Packets answer = s.take(s.b);
  CHECK(answer.size() == 2);
  CHECK(s.events_of_b() == std::vector{queue::AsyncType::QpFatal});
  s.check_refused(answer, kPsnA + 1, 1);
}

TEST_CASE("memory that goes between two responses breaks the read off", "[rc][lost]") {
  LostMemory s;
  s.post_remote(SendOpcode::Read, 1, kPage - 1024, 3000);
  s.post_remote(SendOpcode::Write, 2, 0, 10);
  s.give(s.b, s.take(s.a)[0]);
  wire::OutDatagram first;
  REQUIRE(s.b.engine().next_datagram(s.now, first));
  s.at_b.take_away();
  Packets answer = s.take(s.b);
  REQUIRE(answer.size() == 1);
  s.give(s.b, make_packet(Op::SendOnly, s.b.qpn(), kPsnA + 3));  // answered no more
  CHECK(s.take(s.b).empty());
  CHECK(answer[0] == s.nak(NakCode::RemoteOperationalError, kPsnA + 1, 1));
}

TEST_CASE("an atomic on memory that is gone is refused", "[rc][lost]") {
  const SendOpcode opcode = GENERATE(SendOpcode::CompareSwap, SendOpcode::FetchAdd);
  LostMemory s;
  s.at_b.take_away();
  s.post_remote(opcode, 1, kPage, 8);
  s.post_remote(SendOpcode::Write, 2, 0, 10);
  s.give(s.b, s.take(s.a)[0]);
  CHECK(s.events_of_b() == std::vector{queue::AsyncType::QpFatal});
  s.check_refused(s.take(s.b), kPsnA, 0);
}

TEST_CASE("what cannot be read is not sent, and fails in its turn", "[rc][lost]") {
  LostMemory s;
  s.post_recv(7, 100);
  s.post(SendOpcode::Send, 0, 100);
  s.at_a.take_away();
  s.post_local(GENERATE(SendOpcode::Send, SendOpcode::Write), 1, kPage - 50, 100);
  s.post(SendOpcode::Send, 2, 100);
  const Packets sent = s.take(s.a);
  CHECK(sent.size() == 1);
  CHECK(s.a.poll_send().empty());
  s.give_all(s.b, sent);
  s.give_all(s.a, s.take(s.b));
  CHECK(s.a.poll_send() == Wcs{sent_ok(0), failed(1, WcStatus::LocProtErr), failed(2, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Err);
}

TEST_CASE("a resend that cannot be read fails, unless the peer has it after all", "[rc][lost]") {
  const bool has_arrived = GENERATE(true, false);
  LostMemory s;
  s.post_recv(7, 100);
  s.post_recv(8, 100);
  s.post_recv(9, 100);
  s.post(SendOpcode::Send, 0, 100);
  s.post_local(SendOpcode::Send, 1, kPage, 100);
  const Packets first = s.take(s.a);
  REQUIRE(first.size() == 2);
  if (has_arrived) s.give_all(s.b, first);
  s.take(s.b);  // the acknowledgement is lost
  s.at_a.take_away();
  s.expire(s.a);
  s.give_all(s.b, s.take(s.a));
  s.post(SendOpcode::Send, 2, 100);
  s.carry_all();
  if (has_arrived) {
    CHECK(s.a.poll_send() == Wcs{sent_ok(0), sent_ok(1), sent_ok(2)});
    CHECK(s.is_at_rest());
  } else {
    CHECK(s.a.poll_send() == Wcs{sent_ok(0), failed(1, WcStatus::LocProtErr), failed(2, WcStatus::WrFlushErr)});
  }
}

TEST_CASE("a response that has nowhere to go fails its request", "[rc][lost]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Read, SendOpcode::FetchAdd);
  LostMemory s;
  s.post_local(opcode, 1, kPage, 8);
  s.post(SendOpcode::Write, 2, 10);
  s.give_all(s.b, s.take(s.a));
  s.at_a.take_away();
  s.give_all(s.a, s.take(s.b));
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::LocProtErr), failed(2, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Err);
}

}  // namespace
}  // namespace nicless::sim
