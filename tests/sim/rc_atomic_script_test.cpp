// SPDX-License-Identifier: MIT
// Goal: atomics do what they say, once, whatever the network does; and each mistake has its status. Method: an
// ExactPair; the test carries every packet by hand.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcOpcode;
using queue::WcStatus;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

struct AtomicScript : Script {
  using Script::Script;

  void set_target(std::uint64_t value) { std::memcpy(target.bytes().data(), &value, 8); }
  std::uint64_t at_target() { return word_at(target); }
  std::uint64_t result() { return word_at(source); }
  static std::uint64_t word_at(Buffer& buffer) {
    std::uint64_t value = 0;
    std::memcpy(&value, buffer.bytes().data(), 8);
    return value;
  }
  queue::Wqe atomic(SendOpcode opcode, std::uint64_t wr_id, std::uint64_t compare_add, std::uint64_t swap) {
    queue::Wqe wqe = request(opcode, wr_id, 8);
    wqe.compare_add = compare_add;
    wqe.swap = swap;
    return wqe;
  }
  void post_atomic(SendOpcode opcode, std::uint64_t wr_id, std::uint64_t compare_add, std::uint64_t swap = 0) {
    REQUIRE(a.post_send(now, atomic(opcode, wr_id, compare_add, swap)));
  }
};

Wc done(std::uint64_t wr_id, WcOpcode opcode) {
  return {.wr_id = wr_id, .opcode = opcode, .byte_len = 8};
}

TEST_CASE("fetch-and-add adds and brings back what was there", "[rc][script]") {
  AtomicScript s;
  s.set_target(41);
  s.post_atomic(SendOpcode::FetchAdd, 1, 5);
  Packet add = s.from_a(Op::FetchAdd, kPsnA, true);
  add.headers.atomic = {s.target.address(), s.target.rkey(), 5, 0};
  const Packets requests = s.take(s.a);
  CHECK(requests == Packets{add});
  s.give_all(s.b, requests);
  Packet answer = make_packet(Op::AtomicAcknowledge, s.a.qpn(), kPsnA);
  answer.headers.aeth = wire::Aeth::ack(1);
  answer.headers.atomic_ack.original = 41;
  const Packets responses = s.take(s.b);
  CHECK(responses == Packets{answer});
  s.give_all(s.a, responses);
  CHECK(s.a.poll_send() == Wcs{done(1, WcOpcode::FetchAdd)});
  CHECK(s.at_target() == 46);
  CHECK(s.result() == 41);
  CHECK(s.is_at_rest());
}

TEST_CASE("compare-and-swap swaps only what it expects", "[rc][script]") {
  AtomicScript s;
  s.set_target(7);
  s.post_atomic(SendOpcode::CompareSwap, 1, 7, 100);
  s.carry_all();
  CHECK(s.at_target() == 100);
  CHECK(s.result() == 7);
  s.post_atomic(SendOpcode::CompareSwap, 2, 7, 200);
  s.carry_all();
  CHECK(s.at_target() == 100);
  CHECK(s.result() == 100);
  CHECK(s.a.poll_send() == Wcs{done(1, WcOpcode::CompSwap), done(2, WcOpcode::CompSwap)});
}

TEST_CASE("a duplicate atomic is answered again, not executed again", "[rc][script]") {
  AtomicScript s;
  s.set_target(0);
  s.post_atomic(SendOpcode::FetchAdd, 1, 1);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  const Packets answer = s.take(s.b);
  s.give_all(s.b, request);
  CHECK(s.take(s.b) == answer);
  CHECK(s.at_target() == 1);
}

// Soft-RoCE as the requester completes an atomic by a plain acknowledgement with its PSN, without the result.
TEST_CASE("a duplicate send is acknowledged by itself, not with the PSN of an atomic or read behind it",
          "[rc][script]") {
  AtomicScript s;
  s.set_target(41);
  s.post(SendOpcode::Write, 1, 8);
  const bool is_atomic = GENERATE(true, false);
  if (is_atomic) {
    s.post_atomic(SendOpcode::FetchAdd, 2, 5);
  } else {
    s.post(SendOpcode::Read, 2, 8);
  }
  const Packets requests = s.take(s.a);
  REQUIRE(requests.size() == 2);
  s.give_all(s.b, requests);
  CHECK(s.take(s.b).size() == 1);  // the response, which acknowledges the write too
  s.give(s.b, requests[0]);
  Packet acknowledge = make_packet(Op::Acknowledge, s.a.qpn(), kPsnA);
  acknowledge.headers.aeth = wire::Aeth::ack(2);
  CHECK(s.take(s.b) == Packets{acknowledge});
}

TEST_CASE("a lost answer makes the requester ask again, and the target adds once", "[rc][script]") {
  AtomicScript s;
  s.set_target(0);
  s.post_atomic(SendOpcode::FetchAdd, 1, 1);
  s.post(SendOpcode::Write, 2, 0);
  s.give_all(s.b, s.take(s.a));
  const Packets answers = s.take(s.b);
  REQUIRE(answers.size() == 2);
  s.give(s.a, answers[1]);  // the acknowledgement of the write, behind the answer that was lost
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{done(1, WcOpcode::FetchAdd), sent_ok(2, WcOpcode::RdmaWrite)});
  CHECK(s.at_target() == 1);
}

TEST_CASE("an atomic off a multiple of eight, or without the right, is refused", "[rc][script]") {
  AtomicScript s(
      GENERATE(ConnectionConfig{}, ConnectionConfig{.access = queue::kAccessRemoteWrite | queue::kAccessRemoteRead}));
  const bool has_right = s.b.qp().attributes().access & queue::kAccessRemoteAtomic;
  queue::Wqe wqe = s.atomic(SendOpcode::FetchAdd, 1, 1, 0);
  if (has_right) wqe.remote_addr += 4;
  REQUIRE(s.a.post_send(s.now, wqe));
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RemInvReqErr)});
  CHECK(s.is_untouched());
}

TEST_CASE("the list of an atomic holds eight bytes, or the atomic is never sent", "[rc][script]") {
  AtomicScript s;
  s.post(SendOpcode::FetchAdd, 1, 4);
  CHECK(s.take(s.a).empty());
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::LocLenErr)});
}

}  // namespace
}  // namespace nicless::sim
