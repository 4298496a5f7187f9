// SPDX-License-Identifier: MIT
// Goal: the connection machine reaches what the standard promises whatever the network does to its messages, and says
// to the program exactly what happened. Method: two machines over two links in virtual time; each message lost once,
// then seeded loss, duplication and reordering.
#include "cm/connection.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/cm/pair.h"

namespace nicless::cm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

constexpr auto kForEver = seconds(300);

Pair established() {
  Pair pair;
  pair.connect(request());
  pair.run_for(milliseconds(1));
  return pair;
}

TEST_CASE("a connection takes one REQ, one REP and one RTU", "[connection]") {
  Pair pair;
  pair.connect(request());
  pair.run_for(milliseconds(1));
  CHECK(pair.active.sent_names() == Names{"REQ", "RTU"});
  CHECK(pair.passive.sent_names() == Names{"REP"});
  CHECK(pair.active.event_names() == Names{"REPLIED"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED"});
  CHECK(pair.active.connection->is_established());
  CHECK_FALSE(pair.active.connection->next_deadline());
  CHECK_FALSE(pair.passive.connection->next_deadline());
}

TEST_CASE("each side's queue pair gets what the other announced", "[connection]") {
  const Pair pair = established();
  CHECK(pair.active.connection->agreement() == Agreement{.remote_qpn = queue::Qpn(0x200002),
                                                         .rq_psn = wire::Psn(0x111),
                                                         .sq_psn = wire::Psn(0x222),
                                                         .path_mtu = 3,
                                                         .ack_timeout = 17,
                                                         .retry_count = 7,
                                                         .rnr_retry_count = 5,
                                                         .responder_resources = 1,
                                                         .initiator_depth = 2});
  CHECK(pair.passive.connection->agreement() == Agreement{.remote_qpn = queue::Qpn(0x100001),
                                                          .rq_psn = wire::Psn(0x222),
                                                          .sq_psn = wire::Psn(0x111),
                                                          .path_mtu = 3,
                                                          .ack_timeout = 17,
                                                          .retry_count = 7,
                                                          .rnr_retry_count = 6,
                                                          .responder_resources = 2,
                                                          .initiator_depth = 1});
}

TEST_CASE("any message of the set-up may be lost once", "[connection]") {
  Pair pair;
  SECTION("REQ") {
    pair.lose(pair.active, "REQ");
  }
  SECTION("REP") {
    pair.lose(pair.passive, "REP");
  }
  SECTION("RTU") {
    pair.lose(pair.active, "RTU");
  }
  pair.connect(request());
  pair.run_for(seconds(2));
  CHECK(pair.active.connection->is_established());
  CHECK(pair.passive.connection->is_established());
  CHECK(pair.active.event_names() == Names{"REPLIED"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED"});
}

TEST_CASE("any message of the release may be lost once", "[connection]") {
  Pair pair = established();
  SECTION("DREQ") {
    pair.lose(pair.active, "DREQ");
  }
  SECTION("DREP") {
    pair.lose(pair.passive, "DREP");
  }
  pair.active.connection->disconnect(pair.now);
  pair.run_for(kForEver);
  CHECK(pair.active.event_names() == Names{"REPLIED", "DISCONNECTED", "TIMEWAIT_EXIT"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED", "DISCONNECTED", "TIMEWAIT_EXIT"});
  CHECK(pair.active.events[1] == ConnectionEvent(Disconnected{0}));
  CHECK(pair.active.connection->is_finished());
  CHECK(pair.passive.connection->is_finished());
}

TEST_CASE("either side may release, and both at once: one DISCONNECTED each", "[connection]") {
  Pair pair = established();
  SECTION("the passive side") {
    pair.passive.connection->disconnect(pair.now);
  }
  SECTION("both") {
    pair.active.connection->disconnect(pair.now);
    pair.passive.connection->disconnect(pair.now);
  }
  SECTION("the same side twice") {
    pair.active.connection->disconnect(pair.now);
    pair.active.connection->disconnect(pair.now);
  }
  pair.run_for(kForEver);
  CHECK(pair.active.event_names() == Names{"REPLIED", "DISCONNECTED", "TIMEWAIT_EXIT"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED", "DISCONNECTED", "TIMEWAIT_EXIT"});
}

TEST_CASE("a REQ that nobody answers ends in UNREACHABLE after sixteen tries", "[connection]") {
  Pair pair({.loss = 1.0});
  pair.connect(request());
  pair.run_for(kForEver);
  CHECK(pair.active.sent_names() == Names(16, "REQ"));
  CHECK(pair.active.event_names() == Names{"UNREACHABLE"});
  CHECK(pair.active.connection->is_finished());
}

TEST_CASE("a DREQ that nobody answers ends in DISCONNECTED with a timeout", "[connection]") {
  Pair pair = established();
  pair.passive.connection.reset();
  pair.active.connection->disconnect(pair.now);
  pair.run_for(kForEver);
  CHECK(pair.active.events[1] == ConnectionEvent(Disconnected{-ETIMEDOUT}));
  CHECK(pair.active.event_names() == Names{"REPLIED", "DISCONNECTED", "TIMEWAIT_EXIT"});
}

TEST_CASE("a REP that nobody acknowledges ends in UNREACHABLE", "[connection]") {
  Pair pair;
  pair.on_reply = nullptr;
  pair.connect(request());
  pair.run_for(milliseconds(1));
  pair.active.connection.reset();
  pair.run_for(kForEver);
  CHECK(pair.passive.sent_names() == Names(16, "REP"));
  CHECK(pair.passive.event_names() == Names{"UNREACHABLE"});
}

TEST_CASE("a program that takes its time keeps the other side waiting with MRA", "[connection]") {
  Pair pair;
  pair.on_request = nullptr;
  pair.connect(request());
  pair.run_for(seconds(30));
  CHECK(pair.active.sent_names() == Names{"REQ", "REQ"});
  CHECK(pair.passive.sent_names() == Names{"MRA"});
  REQUIRE(pair.passive.connection->accept(pair.now, reply()).has_value());
  pair.run_for(milliseconds(10));
  CHECK(pair.active.connection->is_established());
  CHECK(pair.passive.connection->is_established());
}

TEST_CASE("an active program that takes its time keeps the REP from being sent again and again", "[connection]") {
  Pair pair;
  pair.on_reply = nullptr;
  pair.connect(request());
  pair.run_for(seconds(30));
  CHECK(pair.passive.sent_names() == Names{"REP", "REP"});
  CHECK(pair.active.sent_names() == Names{"REQ", "MRA"});
  REQUIRE(pair.active.connection->establish().has_value());
  pair.run_for(milliseconds(10));
  CHECK(pair.passive.connection->is_established());
}

TEST_CASE("a refusal carries its reason and private data", "[connection]") {
  const std::array<std::byte, 3> why{std::byte{'n'}, std::byte{'o'}, std::byte{'!'}};
  Pair pair;
  pair.on_request = [&](Connection& c) { CHECK(c.reject(wire::RejReason::ConsumerDefined, why).has_value()); };
  pair.connect(request());
  pair.run_for(kForEver);
  CHECK(pair.active.events ==
        std::vector<ConnectionEvent>{Rejected{wire::RejReason::ConsumerDefined, wire::padded<148>(why)}});
  CHECK(pair.active.connection->is_finished());
  CHECK(pair.passive.events.empty());
}

TEST_CASE("the active side may refuse the reply", "[connection]") {
  Pair pair;
  pair.on_reply = [](Connection& c) { CHECK(c.reject(wire::RejReason::ConsumerDefined, {}).has_value()); };
  pair.connect(request());
  pair.run_for(kForEver);
  CHECK(pair.passive.event_names() == Names{"REJECTED"});
}

TEST_CASE("a reply that comes again was refused for good: the refusal is repeated", "[connection]") {
  const std::array<std::byte, 3> why{std::byte{'n'}, std::byte{'o'}, std::byte{'!'}};
  Pair pair;
  pair.on_reply = [&](Connection& c) { CHECK(c.reject(wire::RejReason::ConsumerDefined, why).has_value()); };
  pair.lose(pair.active, "REJ");
  pair.connect(request());
  pair.run_for(kForEver);
  CHECK(pair.active.sent_names() == Names{"REQ", "REJ", "REJ"});
  CHECK(pair.active.sent[1] == pair.active.sent[2]);
  CHECK(pair.passive.events ==
        std::vector<ConnectionEvent>{Rejected{wire::RejReason::ConsumerDefined, wire::padded<148>(why)}});
}

TEST_CASE("who is told that its connection is unknown at the other end, is told that it has ended", "[connection]") {
  Pair pair = established();
  // The passive side has given up, and the active one has not heard of it.
  pair.passive.connection->on_unreachable(pair.now);
  pair.run_for(kForEver);
  pair.active.connection->probe();
  pair.run_for(milliseconds(1));
  CHECK(pair.passive.sent_names().back() == "REJ");
  CHECK(std::get<wire::CmRej>(pair.passive.sent.back().body).reason == wire::RejReason::InvalidCommId);
  CHECK(pair.active.event_names() == Names{"REPLIED", "DISCONNECTED"});
}

TEST_CASE("a request that comes again while its connection dies out is stale", "[connection]") {
  Pair pair = established();
  pair.active.connection->disconnect(pair.now);
  pair.run_for(milliseconds(1));
  const wire::CmMessage late = pair.active.sent.front();
  pair.passive.connection->on_message(pair.now, late);
  const auto answer = pair.passive.connection->next_message();
  REQUIRE(answer);
  CHECK(std::get<wire::CmRej>(answer->body).reason == wire::RejReason::StaleConnection);
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED", "DISCONNECTED"});
}

TEST_CASE("forgetting a connection tells the peer, from every state", "[connection]") {
  Pair pair;
  Names passive_events;
  SECTION("while the REQ waits") {
    pair.on_request = nullptr;
    pair.connect(request());
    pair.run_for(milliseconds(1));
    passive_events = {"REJECTED"};
  }
  SECTION("while the REP waits") {
    pair.on_reply = nullptr;
    pair.connect(request());
    pair.run_for(milliseconds(1));
    passive_events = {"REJECTED"};
  }
  SECTION("when established") {
    pair.connect(request());
    pair.run_for(milliseconds(1));
    passive_events = {"ESTABLISHED", "DISCONNECTED", "TIMEWAIT_EXIT"};
  }
  pair.active.events.clear();
  pair.active.connection->abandon(pair.now);
  pair.run_for(kForEver);
  CHECK(pair.passive.event_names() == passive_events);
  CHECK(pair.active.events.empty());
  CHECK(pair.active.connection->is_finished());
}

TEST_CASE("a passive side that forgets its request or its reply refuses it", "[connection]") {
  Pair pair;
  pair.on_reply = nullptr;
  Names active_events;
  SECTION("the request") {
    pair.on_request = nullptr;
    active_events = {"REJECTED"};
  }
  SECTION("the reply") {
    active_events = {"REPLIED", "REJECTED", "TIMEWAIT_EXIT"};
  }
  pair.connect(request());
  pair.run_for(milliseconds(1));
  pair.passive.connection->abandon(pair.now);
  pair.run_for(kForEver);
  CHECK(pair.active.event_names() == active_events);
  CHECK(pair.passive.connection->is_finished());
}

TEST_CASE("an unreachable port is a refusal before the connection and an end after it", "[connection]") {
  Pair pair({.loss = 1.0});
  pair.connect(request());
  pair.active.connection->on_unreachable(pair.now);  // once: a host does not say it each time
  pair.run_for(milliseconds(399));
  CHECK(pair.active.events.empty());
  pair.run_for(milliseconds(1));
  CHECK(pair.active.events == std::vector<ConnectionEvent>{Rejected{.reason = wire::RejReason::InvalidServiceId}});

  Pair other = established();
  other.active.connection->on_unreachable(other.now);
  other.run_for(kForEver);
  CHECK(other.active.event_names() == Names{"REPLIED", "DISCONNECTED", "TIMEWAIT_EXIT"});
}

TEST_CASE("a port that nobody listens on for a moment only is asked again", "[connection]") {
  Pair pair;
  pair.lose(pair.active, "REQ");
  pair.connect(request());
  pair.active.connection->on_unreachable(pair.now);
  pair.run_for(kAskAgainAfter[0] + milliseconds(1));
  CHECK(pair.active.event_names() == Names{"REPLIED"});
}

TEST_CASE("a DREQ that overtakes the RTU still makes the connection established first", "[connection]") {
  Pair pair;
  pair.lose(pair.active, "RTU");
  pair.connect(request());
  pair.run_for(milliseconds(1));
  pair.active.connection->disconnect(pair.now);
  pair.run_for(milliseconds(1));
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED", "DISCONNECTED"});
}

TEST_CASE("a DREQ for another queue pair or from another connection changes nothing", "[connection]") {
  Pair pair = established();
  wire::CmDreq dreq{.local_id = pair.passive.connection->remote_id(),
                    .remote_id = pair.passive.connection->local_id(),
                    .remote_qpn = queue::Qpn(0x200002)};
  SECTION("queue pair") {
    dreq.remote_qpn = queue::Qpn(0x200003);
  }
  SECTION("connection") {
    dreq.local_id = CommId(7);
  }
  pair.passive.connection->on_message(pair.now, {.tid = 1, .body = dreq});
  CHECK_FALSE(pair.passive.connection->next_message());
  CHECK(pair.passive.connection->is_established());
}

TEST_CASE("a probe of a living peer changes nothing", "[connection]") {
  Pair pair = established();
  pair.active.connection->probe();
  pair.passive.connection->probe();
  pair.run_for(kForEver);
  CHECK(pair.active.event_names() == Names{"REPLIED"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED"});
  CHECK(pair.active.sent_names() == Names{"REQ", "RTU", "RTU", "RTU"});
}

TEST_CASE("data before the RTU establishes the connection once", "[connection]") {
  Pair pair;
  pair.on_reply = nullptr;
  pair.connect(request());
  pair.run_for(milliseconds(1));
  CHECK(pair.passive.connection->notify_established(pair.now).has_value());
  const auto again = pair.passive.connection->notify_established(pair.now);
  REQUIRE(again.has_error());
  CHECK(again.error().errno_value == EISCONN);
  CHECK(pair.active.connection->establish().has_value());
  pair.run_for(seconds(1));
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED"});
}

TEST_CASE("a wish in the wrong state is EINVAL and changes nothing", "[connection]") {
  Pair pair = established();
  CHECK(pair.active.connection->accept(pair.now, reply()).error().errno_value == EINVAL);
  CHECK(pair.active.connection->establish().error().errno_value == EINVAL);
  CHECK(pair.passive.connection->reject(wire::RejReason::ConsumerDefined, {}).error().errno_value == EINVAL);
  CHECK(pair.active.connection->is_established());
  CHECK_FALSE(pair.active.connection->next_message());
}

TEST_CASE("whatever the network does, a connection forms, ends, and says each thing once", "[connection][seeds]") {
  const auto seed = GENERATE(range(1, 200));
  CAPTURE(seed);
  Pair pair({.seed = static_cast<std::uint64_t>(seed),
             .latency = milliseconds(1),
             .jitter = milliseconds(3),
             .loss = 0.3,
             .duplicate = 0.2,
             .reorder = 0.2,
             .reorder_delay = milliseconds(500)});
  pair.connect(request());
  pair.run_for(seconds(120));
  REQUIRE(pair.active.event_names() == Names{"REPLIED"});
  REQUIRE(pair.passive.event_names() == Names{"ESTABLISHED"});
  Side& first = seed % 2 ? pair.active : pair.passive;
  first.connection->disconnect(pair.now);
  pair.run_for(kForEver);
  CHECK(pair.active.event_names() == Names{"REPLIED", "DISCONNECTED", "TIMEWAIT_EXIT"});
  CHECK(pair.passive.event_names() == Names{"ESTABLISHED", "DISCONNECTED", "TIMEWAIT_EXIT"});
}

}  // namespace
}  // namespace nicless::cm::test
