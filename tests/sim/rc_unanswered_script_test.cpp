// SPDX-License-Identifier: MIT
// Goal: a queue pair that is about to stop knows what it has sent that may still be answered, and since when: what
// provider/stop.h waits for. Method: an ExactPair; packets are answered, or not, by hand.
#include <catch2/catch.hpp>

#include "tests/sim/script.h"
#include "wire/rc/queue_pair.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using std::chrono::microseconds;
using Unanswered = wire::Requester::Unanswered;

std::optional<Unanswered> unanswered(Side& side) {
  return dynamic_cast<wire::RcQueuePair&>(side.qp()).unanswered();
}

TEST_CASE("what was sent is unanswered until it is acknowledged", "[rc][script]") {
  Script s;
  s.post_recv(7, 3000);
  CHECK_FALSE(unanswered(s.a));
  s.post(SendOpcode::Send, 1, 3000);
  const auto request = s.take(s.a);
  const auto sent = unanswered(s.a);
  REQUIRE(sent);
  CHECK(sent->end_psn - sent->first_psn == request.size());
  CHECK(sent->sent_at == s.now);
  s.give_all(s.b, request);
  s.carry_all();
  CHECK_FALSE(unanswered(s.a));
}

TEST_CASE("a read is unanswered until its response has come", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Read, 1, 100);
  const auto request = s.take(s.a);
  CHECK(unanswered(s.a));
  s.give_all(s.b, request);
  s.carry_all();
  CHECK_FALSE(unanswered(s.a));
}

TEST_CASE("what is posted and not sent yet has nothing to wait for", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Send, 1, 100);
  CHECK_FALSE(unanswered(s.a));
}

TEST_CASE("a resend does not make a request younger, and a new request does", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Send, 1, 100);
  const auto start = s.now;
  CHECK(s.take(s.a).size() == 1);
  s.expire(s.a);
  CHECK(s.take(s.a).size() == 1);
  REQUIRE(s.now > start);
  CHECK(unanswered(s.a)->sent_at == start);
  s.post(SendOpcode::Send, 2, 100);
  CHECK(s.take(s.a).size() == 1);
  CHECK(unanswered(s.a)->sent_at == s.now);
}

TEST_CASE("a peer that has no receive posted gives no answer that is worth waiting for", "[rc][script]") {
  Script s;
  s.post(SendOpcode::Send, 1, 100);
  s.give_all(s.b, s.take(s.a));
  s.give_all(s.a, s.take(s.b));
  CHECK_FALSE(unanswered(s.a));
}

TEST_CASE("nothing is unanswered any more in ERR, by a failure or by command", "[rc][script]") {
  Script s({.retry_cnt = 0});
  s.post(SendOpcode::Send, 1, 100);
  CHECK(s.take(s.a).size() == 1);
  if (GENERATE(false, true)) {
    s.expire(s.a);
  } else {
    REQUIRE(s.a.to_state(s.now, wire::QpState::Err));
  }
  CHECK_FALSE(unanswered(s.a));
}

}  // namespace
}  // namespace nicless::sim
