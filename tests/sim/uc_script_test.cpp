// SPDX-License-Identifier: MIT
// Goal: the exact packets of an unreliable connection, and what becomes of a message when one of them is lost, copied
// or late. Method: an ExactPair; the test carries every packet by hand.
#include <sys/mman.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using wire::Op;
using wire::QpState;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

struct UcScript : Script {
  explicit UcScript(const ConnectionConfig& connection = {}) : Script(connection, {.transport = wire::Transport::Uc}) {}
  Packet uc(Op op, std::uint32_t psn, std::span<const std::byte> payload) {
    Packet packet = from_a(op, psn, false, payload);
    packet.headers.bth.opcode = wire::opcode_of(wire::Service::Uc, op);
    return packet;
  }
};

TEST_CASE("a message over an unreliable connection asks for no acknowledgement and gets none", "[uc][script]") {
  UcScript s;
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  const Packets sent = s.take(s.a);
  CHECK(sent == Packets{s.uc(Op::SendFirst, kPsnA, s.sent(0, 1024)),
                        s.uc(Op::SendMiddle, kPsnA + 1, s.sent(1024, 1024)),
                        s.uc(Op::SendLast, kPsnA + 2, s.sent(2048, 452))});
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});  // it has left: that is all there is to know
  s.give_all(s.b, sent);
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_recv() == Wcs{received(7, 2500)});
  CHECK(s.arrived(2500));
}

TEST_CASE("whichever packet is lost, its message is dropped and the next one arrives whole", "[uc][script]") {
  const std::uint32_t first_psn = GENERATE(0x100u, 0xfffffeu);
  const std::size_t lost = GENERATE(0, 1, 2);
  UcScript s({.a_psn = first_psn});
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  s.post(SendOpcode::Send, 2, 2000);
  Packets sent = s.take(s.a);
  REQUIRE(sent.size() == 5);
  sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(lost));
  s.give_all(s.b, sent);
  CHECK(s.b.poll_recv() == Wcs{received(7, 2000)});  // the receive of the first was not used up
  CHECK(s.arrived(2000));
}

TEST_CASE("a copy or a straggler is dropped: a message arrives once, and never behind a newer one", "[uc][script]") {
  const std::uint32_t first_psn = GENERATE(0x100u, 0xfffffeu);
  UcScript s({.a_psn = first_psn});
  for (std::uint64_t i = 0; i < 4; ++i) s.post_recv(i, 3000);
  for (std::uint64_t i = 1; i <= 3; ++i) s.post(SendOpcode::Send, i, 1000 + i);
  const Packets sent = s.take(s.a);
  s.give(s.b, sent[0]);
  s.give(s.b, sent[0]);
  s.give(s.b, sent[2]);
  s.give(s.b, sent[1]);
  CHECK(s.b.poll_recv() == Wcs{received(0, 1001), received(1, 1003)});
  CHECK(s.b.qp().counters().late == 2);
}

TEST_CASE("a copy in the middle of a message does no harm to it", "[uc][script]") {
  UcScript s;
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  const Packets sent = s.take(s.a);
  for (const std::size_t i : {0u, 0u, 1u, 0u, 1u, 2u}) s.give(s.b, sent[i]);
  CHECK(s.b.poll_recv() == Wcs{received(7, 2500)});
  CHECK(s.arrived(2500));
}

TEST_CASE("a peer that begins anew with a number of its own is heard", "[uc][script]") {
  UcScript s;
  s.post_recv(7, 100);
  s.give(s.b, s.uc(Op::SendOnly, kPsnA - 5000, s.sent(0, 10)));
  CHECK(s.b.poll_recv() == Wcs{received(7, 10)});
}

TEST_CASE("windows are bound and invalidated in the order posted, and a peer writes through them", "[uc][script][mw]") {
  UcScript s;
  Buffer region = s.a.make_buffer(4096, queue::kAccessLocalWrite | queue::kAccessMwBind);
  const queue::RKey rkey = s.a.regions().add_window(queue::PdId{1}, queue::WindowType::Type2).value();
  queue::Wqe bind;
  bind.wr_id = 2;
  bind.opcode = SendOpcode::BindMw;
  queue::Binding{rkey, region.lkey(), region.address(), 4096, queue::kAccessRemoteWrite}.put_into(bind);
  s.post(SendOpcode::Send, 1, 2000);
  REQUIRE(s.a.post_send(s.now, bind));
  s.post(SendOpcode::Send, 3, 10);
  CHECK(s.take(s.a).size() == 3);
  CHECK(s.a.poll_send() == Wcs{sent_ok(1), sent_ok(2, WcOpcode::BindMw), sent_ok(3)});

  queue::Wqe write = s.request(SendOpcode::Write, 4, 0);
  const queue::Sge list = s.target.sge(0, 100);
  write.sges = {&list, 1};
  write.remote_addr = region.address();
  write.rkey = rkey;
  std::ranges::fill(s.target.bytes(), std::byte{7});
  REQUIRE(s.b.post_send(s.now, write));
  s.give_all(s.a, s.take(s.b));
  CHECK(region.bytes()[99] == std::byte{7});

  queue::Wqe invalidate;
  invalidate.opcode = SendOpcode::LocalInv;
  invalidate.imm_or_key = rkey.value();
  for (invalidate.wr_id = 5; invalidate.wr_id < 7; ++invalidate.wr_id) {
    REQUIRE(s.a.post_send(s.now, invalidate));
    CHECK(s.take(s.a).empty());
  }
  CHECK(s.a.poll_send() == Wcs{sent_ok(5, WcOpcode::LocalInv), failed(6, WcStatus::MwBindErr)});
  CHECK(s.a.qp().state() == QpState::Sqe);
}

TEST_CASE("a write to memory that the program has unmapped ends an unreliable connection", "[uc][script][lost]") {
  UcScript s;
  constexpr std::size_t kPage = 4096;
  void* const page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(page));
  const std::uint32_t access = queue::kAccessLocalWrite | queue::kAccessRemoteWrite;
  const auto keys = s.b.regions().add(queue::PdId{1}, static_cast<std::byte*>(page), address, kPage, access);
  REQUIRE(keys);
  ::munmap(page, kPage);
  queue::Wqe write = s.request(SendOpcode::Write, 1, 100);
  write.remote_addr = address;
  write.rkey = keys->rkey;
  REQUIRE(s.a.post_send(s.now, write));
  s.give_all(s.b, s.take(s.a));
  CHECK(s.take(s.b).empty());
  CHECK(s.b.qp().state() == QpState::Err);
  const auto event = s.b.async_events().take();
  REQUIRE(event);
  CHECK(event->type == queue::AsyncType::QpFatal);
}

TEST_CASE("without a receive a message is dropped and counted", "[uc][script]") {
  UcScript s;
  s.post(SendOpcode::Send, 1, 2500);
  s.give_all(s.b, s.take(s.a));
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 2, 10);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_recv() == Wcs{received(7, 10)});
  CHECK(s.b.qp().counters().no_receive == 1);
}

TEST_CASE("a write by a wrong key is dropped without a word, and the connection lives on", "[uc][script]") {
  UcScript s;
  queue::Wqe wqe = s.request(SendOpcode::Write, 1, 2000);
  wqe.rkey = queue::RKey(wqe.rkey.value() ^ 0x10);
  REQUIRE(s.a.post_send(s.now, wqe));
  s.post(SendOpcode::Write, 2, 1500);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.take(s.b).empty());
  CHECK(s.b.qp().state() == QpState::Rts);
  CHECK(s.arrived(1500));
  CHECK(s.is_untouched(1500));
}

TEST_CASE("reads, atomics and invalidation are not for unreliable connections", "[uc][script]") {
  UcScript s;
  const SendOpcode opcode = GENERATE(SendOpcode::Read, SendOpcode::CompareSwap, SendOpcode::FetchAdd);
  const auto refused = s.a.post_send(s.now, s.request(opcode, 1, 8));
  REQUIRE(!refused);
  CHECK(refused.error().errno_value == EINVAL);
}

TEST_CASE("a bad list ends in SQE: what stands behind is flushed, receiving goes on, and RTS resumes", "[uc][script]") {
  UcScript s;
  REQUIRE(s.a.post_recv(30, {}));
  s.post(SendOpcode::Send, 1, 10);
  queue::Wqe wqe = s.request(SendOpcode::Send, 2, 100);
  s.sge.lkey = queue::LKey(s.sge.lkey.value() ^ 0x40);
  REQUIRE(s.a.post_send(s.now, wqe));
  s.post(SendOpcode::Send, 3, 10);
  CHECK(s.take(s.a).size() == 1);
  s.post(SendOpcode::Send, 4, 10);
  CHECK(s.a.poll_send() == Wcs{sent_ok(1), failed(2, WcStatus::LocProtErr), failed(3, WcStatus::WrFlushErr),
                               failed(4, WcStatus::WrFlushErr)});
  CHECK(s.a.qp().state() == QpState::Sqe);
  REQUIRE(s.b.post_send(s.now, {.wr_id = 1}));
  s.give_all(s.a, s.take(s.b));
  CHECK(s.a.poll_recv() == Wcs{received(30, 0)});
  REQUIRE(s.a.to_state(s.now, QpState::Rts));
  s.post(SendOpcode::Send, 5, 10);
  CHECK(s.take(s.a).size() == 1);
  CHECK(s.a.poll_send() == Wcs{sent_ok(5)});
}

TEST_CASE("SQD finishes the message that is half sent, and SQ_DRAINED comes when it has left", "[uc][script]") {
  UcScript s;
  s.post(SendOpcode::Send, 1, 2500);
  s.post(SendOpcode::Send, 2, 10);
  wire::OutDatagram out;
  REQUIRE(s.a.engine().next_datagram(s.now, out));
  REQUIRE(s.a.to_state(s.now, QpState::Sqd, wire::attr_mask::kEnSqdAsyncNotify));
  CHECK(!s.a.async_events().take());
  REQUIRE(s.a.engine().next_datagram(s.now, out));
  REQUIRE(s.a.engine().next_datagram(s.now, out));
  CHECK(!s.a.engine().next_datagram(s.now, out));
  CHECK(!s.a.async_events().take());
  s.a.engine().on_sent();
  const auto event = s.a.async_events().take();
  REQUIRE(event);
  CHECK(event->type == queue::AsyncType::SqDrained);
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
  REQUIRE(s.a.to_state(s.now, QpState::Rts));
  CHECK(s.take(s.a).size() == 1);
  CHECK(s.a.poll_send() == Wcs{sent_ok(2)});
}

}  // namespace
}  // namespace nicless::sim
