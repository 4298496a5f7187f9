// SPDX-License-Identifier: MIT
// Goal: every operation, when its packet comes in its turn, once more, or before its turn, and over the wrap of the
// sequence numbers; and how many reads and atomics may be under way at once. Method: an ExactPair; the test carries
// every packet by hand.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using wire::NakCode;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

constexpr std::uint32_t kWrap = 0xffffff;  // the second packet has PSN 0

bool brings_data(SendOpcode opcode) {
  return opcode == SendOpcode::Read || opcode == SendOpcode::CompareSwap || opcode == SendOpcode::FetchAdd;
}

bool takes_receive(SendOpcode opcode) {
  return opcode == SendOpcode::Send || opcode == SendOpcode::SendImm || opcode == SendOpcode::WriteImm;
}

struct OpcodeScript : Script {
  OpcodeScript(SendOpcode the_opcode, std::uint32_t psn) : Script({.a_psn = psn}), opcode(the_opcode) {
    std::fill_n(target.bytes().begin(), 8, std::byte{0});
  }
  // Eight bytes: a fetch-and-add of 1 to zero, a swap of zero for 7.
  void post_one(std::uint64_t wr_id) {
    queue::Wqe wqe = request(opcode, wr_id, 8);
    wqe.compare_add = opcode == SendOpcode::FetchAdd ? 1 : 0;
    wqe.swap = 7;
    REQUIRE(a.post_send(now, wqe));
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    std::memcpy(&value, target.bytes().data(), sizeof value);
    return value;
  }
  // What the operation leaves there when it is carried out once.
  std::uint64_t word_after() {
    std::uint64_t value = 0;
    if (opcode == SendOpcode::FetchAdd) return 1;
    if (opcode == SendOpcode::CompareSwap) return 7;
    if (opcode != SendOpcode::Read) std::memcpy(&value, sent(0, 8).data(), sizeof value);
    return value;
  }
  const SendOpcode opcode;
};

SendOpcode any_opcode() {
  return GENERATE(SendOpcode::Send, SendOpcode::SendImm, SendOpcode::Write, SendOpcode::WriteImm, SendOpcode::Read,
                  SendOpcode::CompareSwap, SendOpcode::FetchAdd);
}

TEST_CASE("an operation in its turn is carried out and answered, on both sides of the wrap", "[rc][script]") {
  const SendOpcode opcode = any_opcode();
  const std::uint32_t psn = GENERATE(0x100u, kWrap, 0xfffffeu);
  OpcodeScript s(opcode, psn);
  s.post_recv(7, 8);
  s.post_recv(8, 8);
  s.post_one(1);
  s.carry_all();
  CHECK(s.word() == s.word_after());
  s.post_one(2);
  s.carry_all();
  const Wcs done = s.a.poll_send();
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == WcStatus::Success);
  CHECK(done[1].status == WcStatus::Success);
  CHECK(s.b.poll_recv().size() == (takes_receive(opcode) ? 2 : 0));
  CHECK(s.is_at_rest());
}

TEST_CASE("an operation that comes once more is answered again, and not carried out again", "[rc][script]") {
  const SendOpcode opcode = any_opcode();
  const std::uint32_t psn = GENERATE(0x100u, kWrap);
  OpcodeScript s(opcode, psn);
  s.post_recv(7, 8);
  s.post_recv(8, 8);
  s.post_one(1);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  const Packets answer = s.take(s.b);
  REQUIRE(answer.size() == 1);
  CHECK(s.b.poll_recv().size() == (takes_receive(opcode) ? 1 : 0));
  const std::uint64_t elsewhere = 0x1234;  // the program goes on with its memory
  if (opcode != SendOpcode::Read) std::memcpy(s.target.bytes().data(), &elsewhere, sizeof elsewhere);
  s.give_all(s.b, request);
  s.give_all(s.b, request);
  CHECK(s.take(s.b) == answer);
  CHECK(s.b.poll_recv().empty());
  CHECK(s.word() == (opcode == SendOpcode::Read ? 0 : elsewhere));
}

TEST_CASE("an operation before its turn is not carried out, and one NAK says what is missing", "[rc][script]") {
  const SendOpcode opcode = any_opcode();
  const std::uint32_t psn = GENERATE(0x100u, kWrap);
  OpcodeScript s(opcode, psn);
  s.post_recv(7, 100);
  s.post_recv(8, 8);
  s.post(SendOpcode::Send, 1, 100);
  s.post_one(2);
  s.post_one(3);
  const Packets requests = s.take(s.a);
  REQUIRE(requests.size() == 3);
  s.give(s.b, requests[1]);
  s.give(s.b, requests[2]);
  CHECK(s.take(s.b) == Packets{s.nak(NakCode::PsnSequenceError, psn, 0)});
  CHECK(s.word() == 0);
  CHECK(s.b.poll_recv().empty());
}

TEST_CASE("a lost answer to any operation is mended by asking again", "[rc][script]") {
  const SendOpcode opcode = any_opcode();
  const std::uint32_t psn = GENERATE(0x100u, kWrap);
  OpcodeScript s(opcode, psn);
  s.post_recv(7, 8);
  s.post_one(1);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  CHECK(s.take(s.b).size() == 1);
  s.expire(s.a);
  CHECK(s.take(s.a) == request);
  s.give_all(s.b, request);
  s.carry_all();
  const Wcs done = s.a.poll_send();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::Success);
  CHECK(s.word() == s.word_after());
}

TEST_CASE("no more reads and atomics are under way than max_rd_atomic, and 0 counts as 1", "[rc][script]") {
  const int most = GENERATE(0, 1, 2, 4);
  const std::size_t at_once = most == 0 ? 1 : static_cast<std::size_t>(most);
  Script s({.max_rd_atomic = static_cast<std::uint8_t>(most)});
  for (std::uint64_t i = 0; i < 6; ++i) s.post(i % 2 == 0 ? SendOpcode::Read : SendOpcode::FetchAdd, i, 8);
  const Packets first = s.take(s.a);
  CHECK(first.size() == at_once);
  s.give(s.b, first[0]);
  s.give_all(s.a, s.take(s.b));
  CHECK(s.take(s.a).size() == 1);  // the room of the one that was answered
  CHECK(s.a.poll_send() == Wcs{read_ok(0, 8)});
}

TEST_CASE("a read or an atomic more at once than max_dest_rd_atomic is refused as invalid", "[rc][script]") {
  const int most = GENERATE(0, 1, 2);
  const SendOpcode opcode = GENERATE(SendOpcode::Read, SendOpcode::FetchAdd);
  Script s({.max_rd_atomic = 16, .max_dest_rd_atomic = static_cast<std::uint8_t>(most)});
  for (int i = 0; i <= most; ++i) s.post(opcode, static_cast<std::uint64_t>(i), 8);
  s.give_all(s.b, s.take(s.a));
  const Packets answers = s.take(s.b);
  REQUIRE(answers.size() == static_cast<std::size_t>(most) + 1);
  CHECK(answers.back() ==
        s.nak(NakCode::InvalidRequest, kPsnA + static_cast<std::uint32_t>(most), static_cast<std::uint32_t>(most)));
  s.give_all(s.a, answers);
  const Wcs done = s.a.poll_send();
  REQUIRE(done.size() == static_cast<std::size_t>(most) + 1);
  for (int i = 0; i < most; ++i) CHECK(done[static_cast<std::size_t>(i)].status == WcStatus::Success);
  CHECK(done.back() == failed(static_cast<std::uint64_t>(most), WcStatus::RemInvReqErr));
}

TEST_CASE("a duplicate read or atomic older than the responder remembers is dropped", "[rc][script]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Read, SendOpcode::FetchAdd);
  Script s({.max_rd_atomic = 2, .max_dest_rd_atomic = 2});
  std::vector<Packet> requests;
  for (std::uint64_t i = 0; i < 3; ++i) {
    s.post(opcode, i, 8);
    requests.push_back(s.take(s.a).at(0));
    s.give(s.b, requests.back());
    s.give_all(s.a, s.take(s.b));
  }
  s.give(s.b, requests[0]);
  CHECK(s.take(s.b).empty());
  s.give(s.b, requests[1]);
  CHECK(s.take(s.b).size() == 1);
}

TEST_CASE("a fenced request waits for the reads and atomics before it, and for nothing else", "[rc][script]") {
  const SendOpcode opcode = any_opcode();
  const SendOpcode before = GENERATE(SendOpcode::Read, SendOpcode::FetchAdd, SendOpcode::Write);
  Script s;
  s.post(before, 1, 8);
  queue::Wqe fenced = s.request(opcode, 2, 8);
  fenced.fence = true;
  REQUIRE(s.a.post_send(s.now, fenced));
  s.post(SendOpcode::Write, 3, 8);  // stands behind it, and does not overtake
  const Packets sent = s.take(s.a);
  CHECK(sent.size() == (brings_data(before) ? 1 : 3));
  s.give_all(s.b, sent);
  s.give_all(s.a, s.take(s.b));
  CHECK(s.take(s.a).size() == (brings_data(before) ? 2 : 0));
}

}  // namespace
}  // namespace nicless::sim
