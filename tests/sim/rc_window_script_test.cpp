// SPDX-License-Identifier: MIT
// Goal: binding and invalidating are requests among others: in their turn, once, completed in order; and what a peer's
// message invalidates is dead before the message completes. Method: an ExactPair, packets carried by hand.
#include <array>
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

constexpr queue::PdId kPd{1};

queue::RKey next(queue::RKey rkey) {
  return queue::RKey{(rkey.value() & ~0xffu) | ((rkey.value() + 1) & 0xff)};
}
Wc bound(std::uint64_t wr_id) {
  return sent_ok(wr_id, WcOpcode::BindMw);
}
Wc invalidated(std::uint64_t wr_id) {
  return sent_ok(wr_id, WcOpcode::LocalInv);
}
Wc received_inv(std::uint64_t wr_id, std::uint32_t bytes, queue::RKey rkey) {
  return {.wr_id = wr_id, .opcode = WcOpcode::Recv, .byte_len = bytes, .flags = queue::kWcWithInv, .imm = rkey.value()};
}

struct Windows : Script {
  explicit Windows(const ConnectionConfig& connection = {}) : Script(connection) {
    window = next(b.regions().add_window(kPd, queue::WindowType::Type2).value());
  }
  void bind(std::uint64_t wr_id, queue::RKey rkey, bool fence = false) {
    queue::Wqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = SendOpcode::BindMw;
    wqe.fence = fence;
    queue::Binding{rkey, region.lkey(), region.address(), 4096, queue::kAccessRemoteWrite}.put_into(wqe);
    REQUIRE(b.post_send(now, wqe));
  }
  void invalidate(std::uint64_t wr_id, queue::RKey rkey, bool fence = false) {
    queue::Wqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = SendOpcode::LocalInv;
    wqe.fence = fence;
    wqe.imm_or_key = rkey.value();
    REQUIRE(b.post_send(now, wqe));
  }
  // B's send to A.
  void post_from_b(SendOpcode opcode, std::uint64_t wr_id, std::size_t length) {
    queue::Wqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = opcode;
    wqe.remote_addr = source.address();
    wqe.rkey = source.rkey();
    const queue::Sge list = target.sge(0, length);
    wqe.sges = {&list, 1};
    REQUIRE(b.post_send(now, wqe));
  }
  void write_by_window(std::uint64_t wr_id, std::size_t length) {
    queue::Wqe wqe = request(SendOpcode::Write, wr_id, length);
    wqe.remote_addr = region.address();
    wqe.rkey = window;
    REQUIRE(a.post_send(now, wqe));
  }
  void send_inv(std::uint64_t wr_id, std::size_t length, queue::RKey rkey) {
    queue::Wqe wqe = request(SendOpcode::SendInv, wr_id, length);
    wqe.imm_or_key = rkey.value();
    REQUIRE(a.post_send(now, wqe));
  }
  bool is_open() {
    return static_cast<bool>(
        b.regions().find_remote({kPd, b.qpn()}, window, region.address(), 1, queue::kAccessRemoteWrite));
  }

  Buffer region = b.make_buffer(8192, queue::kAccessLocalWrite | queue::kAccessMwBind);
  queue::RKey window;
};

}  // namespace

TEST_CASE("binding and invalidating send nothing and complete at once where nothing stands before them", "[rc][mw]") {
  Windows s;
  s.bind(1, s.window);
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_send() == Wcs{bound(1)});
  CHECK(s.is_open());
  s.invalidate(2, s.window);
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_send() == Wcs{invalidated(2)});
  CHECK_FALSE(s.is_open());
  CHECK(!s.b.engine().next_deadline());
}

TEST_CASE("a peer writes through a window until it is invalidated", "[rc][mw]") {
  Windows s;
  s.bind(1, s.window);
  s.take(s.b);
  s.write_by_window(2, 3000);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(2, WcOpcode::RdmaWrite)});
  CHECK(std::equal(s.sent(0, 3000).begin(), s.sent(0, 3000).end(), s.region.bytes().begin()));
  s.invalidate(3, s.window);
  s.take(s.b);
  s.write_by_window(4, 10);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{failed(4, WcStatus::RemAccessErr)});
}

TEST_CASE("a bind among sends is done in its turn and completes in order", "[rc][mw]") {
  Windows s;
  const queue::Sge list = s.source.sge(0, 4096);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(s.a.post_recv(i, {&list, 1}));
  s.post_from_b(SendOpcode::Send, 1, 100);
  s.bind(2, s.window);
  s.post_from_b(SendOpcode::Send, 3, 100);
  s.invalidate(4, s.window);
  const Packets sent = s.take(s.b);
  CHECK(sent.size() == 2);
  CHECK(s.b.poll_send().empty());
  s.give(s.a, sent[0]);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_send() == Wcs{sent_ok(1), bound(2)});
  s.give(s.a, sent[1]);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_send() == Wcs{sent_ok(3), invalidated(4)});
  CHECK(s.is_at_rest());
}

TEST_CASE("going back after a loss does not bind or invalidate again", "[rc][mw]") {
  Windows s;
  const queue::Sge list = s.source.sge(0, 4096);
  for (std::uint64_t i = 0; i < 2; ++i) REQUIRE(s.a.post_recv(i, {&list, 1}));
  s.post_from_b(SendOpcode::Send, 1, 100);
  s.bind(2, s.window);
  s.invalidate(3, s.window);
  s.post_from_b(SendOpcode::Send, 4, 100);
  const Packets lost = s.take(s.b);
  CHECK(lost.size() == 2);
  s.expire(s.b);
  CHECK(s.take(s.b) == lost);  // a second bind, of a window in use, would have failed
  s.give_all(s.a, lost);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_send() == Wcs{sent_ok(1), bound(2), invalidated(3), sent_ok(4)});
  CHECK(s.is_at_rest());
}

TEST_CASE("a fenced bind or invalidation waits for the reads before it", "[rc][mw]") {
  const bool fence = GENERATE(true, false);
  Windows s;
  s.post_from_b(SendOpcode::Read, 1, 100);
  s.bind(2, s.window, fence);
  const Packets read = s.take(s.b);
  CHECK(s.is_open() == !fence);
  s.give_all(s.a, read);
  s.give_all(s.b, s.take(s.a));
  s.take(s.b);
  CHECK(s.is_open());
  CHECK(s.b.poll_send() == Wcs{read_ok(1, 100), bound(2)});
}

TEST_CASE("what cannot be bound or invalidated fails in its turn with MW_BIND_ERR", "[rc][mw]") {
  const bool is_bind = GENERATE(true, false);
  Windows s;
  const queue::Sge list = s.source.sge(0, 4096);
  REQUIRE(s.a.post_recv(7, {&list, 1}));
  s.post_from_b(SendOpcode::Send, 1, 100);
  is_bind ? s.bind(2, queue::RKey{0x12345678}) : s.invalidate(2, s.window);
  s.post_from_b(SendOpcode::Send, 3, 100);
  const Packets sent = s.take(s.b);
  CHECK(sent.size() == 1);
  s.give_all(s.a, sent);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_send() == Wcs{sent_ok(1), failed(2, WcStatus::MwBindErr), failed(3, WcStatus::WrFlushErr)});
  CHECK(s.b.qp().state() == QpState::Err);
  const auto reasons = s.b.qp().take_reasons();
  REQUIRE(reasons.size() == 1);
  if (is_bind) {
    CHECK_THAT(reasons[0],
               Catch::Contains("bind wr_id 0x2: rkey 0x12345678 is no window's; completes with MW_BIND_ERR"));
  } else {
    CHECK_THAT(reasons[0], Catch::Contains("local invalidate wr_id 0x2: rkey 0x") &&
                               Catch::Contains(" is a window's that is not bound by it; completes with MW_BIND_ERR"));
  }
}

TEST_CASE("requests that send nothing are flushed like others, and wait in SQD", "[rc][mw]") {
  Windows s;
  REQUIRE(s.b.to_state(s.now, QpState::Sqd));
  s.bind(1, s.window);
  s.take(s.b);
  CHECK(s.b.poll_send().empty());
  CHECK_FALSE(s.is_open());
  REQUIRE(s.b.to_state(s.now, QpState::Err));
  CHECK(s.b.poll_send() == Wcs{failed(1, WcStatus::WrFlushErr)});
  s.bind(2, s.window);
  CHECK(s.b.poll_send() == Wcs{failed(2, WcStatus::WrFlushErr)});
  CHECK_FALSE(s.is_open());
}

TEST_CASE("a send with invalidate carries the key in its last packet, and completes with it", "[rc][mw]") {
  const std::size_t length = GENERATE(0, 100, 3000);
  Windows s;
  s.bind(1, s.window);
  s.take(s.b);
  s.post_recv(7, 4000);
  s.send_inv(2, length, s.window);
  const Packets sent = s.take(s.a);
  Packet last =
      s.from_a(length > kMtu ? Op::SendLastInv : Op::SendOnlyInv, kPsnA + static_cast<std::uint32_t>(sent.size()) - 1,
               true, s.sent(length - length % kMtu, length % kMtu));
  last.headers.ieth.rkey = s.window;
  CHECK(sent.back() == last);
  for (std::size_t i = 0; i + 1 < sent.size(); ++i) s.give(s.b, sent[i]);
  CHECK(s.is_open());
  s.give(s.b, last);
  CHECK_FALSE(s.is_open());
  CHECK(s.b.poll_recv() == Wcs{received_inv(7, static_cast<std::uint32_t>(length), s.window)});
  s.give_all(s.a, s.take(s.b));
  CHECK(s.a.poll_send() == Wcs{sent_ok(2)});
  s.give(s.b, last);  // a duplicate: acknowledged, and nothing is there to be invalidated
  CHECK(s.take(s.b).size() == 1);
  CHECK(s.b.qp().state() == QpState::Rts);
}

TEST_CASE("a message that asks to invalidate what may not be is refused: REM_ACCESS_ERR", "[rc][mw]") {
  Windows s;
  s.bind(1, s.window);
  s.take(s.b);
  const queue::RKey type_1 = next(s.b.regions().add_window(kPd, queue::WindowType::Type1).value());
  const queue::RKey others = next(s.b.regions().add_window(kPd, queue::WindowType::Type2).value());
  const queue::Binding binding{type_1, s.region.lkey(), s.region.address(), 100, queue::kAccessRemoteRead};
  REQUIRE(s.b.regions().bind({kPd, s.b.qpn()}, binding));
  queue::Binding of_another = binding;
  of_another.rkey = others;
  REQUIRE(s.b.regions().bind({kPd, queue::Qpn(5)}, of_another));
  const std::array bad{s.region.rkey(), type_1, others, next(s.window), queue::RKey{0}};
  const std::size_t which = GENERATE(range(std::size_t{0}, std::size_t{5}));
  s.post_recv(7, 100);
  s.post_recv(8, 100);
  s.send_inv(2, 10, bad[which]);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.b.poll_recv() == Wcs{failed(7, WcStatus::WrFlushErr), failed(8, WcStatus::WrFlushErr)});
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(NakCode::RemoteAccessError, kPsnA, 0)});
  CHECK(s.is_open());
  s.give_all(s.a, answer);
  CHECK(s.a.poll_send() == Wcs{failed(2, WcStatus::RemAccessErr)});
}

}  // namespace nicless::sim
