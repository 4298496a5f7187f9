// SPDX-License-Identifier: MIT
// Goal: what connections of one process mean to each other and to a peer that has died or begun anew: stale
// connections, half-open ones, forged messages, full backlogs. Method: processes over links without faults in virtual
// time, exact scripts; cm_sim_test.cpp has the chance.
#include "cm/switchboard.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/cm/network.h"
#include "tests/cm/pair.h"

namespace nicless::cm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

Names names_of(const Id& id) {
  Names names;
  for (const ConnectionEvent& event : id.events) names.push_back(name_of(event));
  return names;
}

NetworkConfig quiet(bool is_strict = false) {
  return {.hosts = 3, .is_strict = is_strict, .faults = {.latency = milliseconds(1)}};
}

// Programs that accept and establish at once.
struct Willing : Network {
  explicit Willing(const NetworkConfig& config = quiet()) : Network(config) {
    on_request = [this](Id& id) { accept(id); };
    on_event = [this](Id& id, const ConnectionEvent& event) {
      if (std::holds_alternative<Replied>(event)) establish(id);
    };
  }
  void wait(queue::Duration time) { run_until(now + time); }
  // Both ends, active first; requests are fetched within three seconds.
  std::pair<Id*, Id*> connected(std::size_t from, std::size_t to) {
    Id* active = &connect(from, to);
    wait(seconds(4));
    Id* passive = peer_of(*active);
    REQUIRE(passive != nullptr);
    REQUIRE(active->is_established());
    REQUIRE(passive->is_established());
    return {active, passive};
  }
};

TEST_CASE("who begins anew with the queue pair of an old connection is told that it is stale, and the old one ends",
          "[switchboard]") {
  Willing network(quiet(true));
  Id* old = network.connected(0, 1).second;
  network.kill(0);
  network.start(0);
  Id& again = network.connect(0, 1);
  network.wait(milliseconds(5));
  CHECK(again.events.at(0) == ConnectionEvent(Rejected{.reason = wire::RejReason::StaleConnection}));
  CHECK(names_of(*old) == Names{"ESTABLISHED", "DISCONNECTED"});
  network.wait(seconds(3));
  CHECK(names_of(again) == Names{"REJECTED", "TIMEWAIT_EXIT"});
  network.connected(0, 1);
}

TEST_CASE("a reply that names the queue pair of another connection is refused, and that one ends", "[switchboard]") {
  Willing network(quiet(true));
  Id* old = network.connected(0, 1).first;
  network.kill(1);
  network.start(1);
  Id& again = network.connect(0, 1);
  network.wait(milliseconds(500));
  CHECK(names_of(*old) == Names{"REPLIED", "DISCONNECTED"});
  network.wait(seconds(10));
  CHECK(again.events.at(0) == ConnectionEvent(Rejected{.reason = wire::RejReason::StaleConnection}));
  network.connected(0, 1);
}

TEST_CASE("a queue pair that was released may connect again at once", "[switchboard]") {
  Willing network(quiet(true));
  auto [active, passive] = network.connected(0, 1);
  network.disconnect(*active);
  network.wait(milliseconds(10));
  network.kill(0);  // its numbers begin anew
  network.start(0);
  CHECK(names_of(*passive) == Names{"ESTABLISHED", "DISCONNECTED"});
  network.connected(0, 1);
}

TEST_CASE("a peer that is killed is missed within two seconds", "[switchboard]") {
  const bool is_strict = GENERATE(false, true);
  const std::size_t killed = GENERATE(0, 1);
  CAPTURE(is_strict, killed);
  Willing network(quiet(is_strict));
  auto [active, passive] = network.connected(0, 1);
  network.kill(killed);
  network.wait(seconds(2));
  CHECK(names_of(killed == 0 ? *passive : *active).at(1) == "DISCONNECTED");
}

TEST_CASE("a peer that is killed while data flows is missed by its closed port, with all that is behind it",
          "[switchboard]") {
  const std::size_t killed = GENERATE(0, 1);
  CAPTURE(killed);
  Willing network;
  std::vector<Id*> left;
  for (int i = 0; i < 3; ++i) {
    auto [active, passive] = network.connected(0, 1);
    left.push_back(killed == 0 ? passive : active);
  }
  const Id* elsewhere = network.connected(2, killed == 0 ? 1 : 0).second;
  network.kill(killed);
  network.send_data(*left[0]);
  for (const Id* id : left) CHECK(names_of(*id).at(1) == "DISCONNECTED");
  CHECK(elsewhere->is_established());
}

TEST_CASE("a port that is closed with a queue pair ends no connection but those of that port", "[switchboard]") {
  Willing network;
  const Id* active = network.connected(0, 1).first;
  Switchboard board;
  const wire::Gid peer = active->entry->path.remote.address;
  std::vector<ConnectionEntry*> entries;
  for (const std::uint32_t qpn : {0x9c41ffu, 0x9c4200u, 0x9c42ffu, 0x9c4300u}) {
    wire::CmReq req = request();
    req.local_qpn = queue::Qpn(qpn);
    entries.push_back(&board.add(Connection::answer({.local_id = CommId(qpn)}, {.tid = 1, .body = req}),
                                 {nullptr, {}, {peer, 1}, 0}, reinterpret_cast<CmId*>(&network)));
  }
  board.on_data_port_closed({}, peer, {queue::Qpn(0x9c4200), 256});
  CHECK(entries[0]->connection.is_answering());
  CHECK(entries[1]->connection.is_finished());
  CHECK(entries[2]->connection.is_finished());
  CHECK(entries[3]->connection.is_answering());
}

TEST_CASE("a process that exits releases its connections, and those that wait for an answer hear of it",
          "[switchboard]") {
  const bool is_strict = GENERATE(false, true);
  Willing network(quiet(is_strict));
  auto [active, passive] = network.connected(0, 1);
  auto [other_active, other_passive] = network.connected(1, 0);
  network.on_request = nullptr;
  Id& waiting = network.connect(2, 0);
  network.connect(0, 2);
  network.wait(milliseconds(10));
  const auto asked = std::find_if(network.ids().begin(), network.ids().end(),
                                  [](const Id& id) { return id.host == 2 && !id.is_active; });
  REQUIRE(asked != network.ids().end());
  network.exit(0);
  network.wait(milliseconds(2));
  CHECK(names_of(*passive) == Names{"ESTABLISHED", "DISCONNECTED"});
  CHECK(names_of(*other_active) == Names{"REPLIED", "DISCONNECTED"});
  CHECK(names_of(waiting) == Names{"REJECTED"});
  CHECK(names_of(*asked) == Names{"REJECTED"});
  CHECK(active->entry == nullptr);
  CHECK(other_passive->entry == nullptr);
}

TEST_CASE("a peer that is killed is missed although another process has its place at once", "[switchboard]") {
  const std::size_t killed = GENERATE(0, 1);
  CAPTURE(killed);
  Willing network(quiet(true));
  std::vector<Id*> left;
  for (int i = 0; i < 5; ++i) {
    auto [active, passive] = network.connected(0, 1);
    left.push_back(killed == 0 ? passive : active);
  }
  network.kill(killed);
  network.start(killed);
  network.wait(seconds(2));
  for (const Id* id : left) CHECK(names_of(*id).at(1) == "DISCONNECTED");
}

TEST_CASE("of two ends that watch each other the one that connected asks, and the other hears that it is there",
          "[switchboard]") {
  Willing network;
  network.connected(0, 1);
  const std::size_t active_before = network.sent(0);
  const std::size_t passive_before = network.sent(1);
  network.wait(seconds(20));
  CHECK(network.sent(0) - active_before == 20);
  CHECK(network.sent(1) == passive_before);
  // A question is lost: the other end asks once, and is answered.
  network.lose_next(0, 1, "RTU");
  network.wait(seconds(20));
  CHECK(network.sent(1) == passive_before + 1);
}

TEST_CASE("every connection with a peer is asked after in its turn", "[switchboard]") {
  Willing network;
  auto [lost, lost_peer] = network.connected(0, 1);
  network.connected(0, 1);
  network.connected(0, 1);
  // The passive end is gone without a word, its process is not.
  network.lose_next(1, 0, "DREQ");
  lost_peer->connection().on_unreachable(network.now);
  network.destroy(*lost_peer);
  network.wait(seconds(10));
  CHECK(names_of(*lost).at(1) == "DISCONNECTED");
}

TEST_CASE("a late duplicate of the request makes no second connection", "[switchboard]") {
  Willing network;
  auto [active, passive] = network.connected(0, 1);
  const CommId asked = active->connection().local_id();
  network.disconnect(*active);
  network.wait(milliseconds(10));
  SECTION("while the id is there") {}
  SECTION("when it was destroyed") {
    network.destroy(*passive);
  }
  const std::size_t ids_before = network.ids().size();
  wire::CmReq late = request();
  late.local_id = asked;
  network.forge(0, 1, {.tid = 1, .body = late});
  network.wait(milliseconds(10));
  CHECK(network.ids().size() == ids_before);
}

TEST_CASE("a message that does not name both ends moves no path", "[switchboard]") {
  Willing network;
  auto [active, passive] = network.connected(0, 1);
  // From the right host and a wrong process of it, for the right id.
  const wire::Endpoint path = active->entry->path.remote;
  wire::Endpoint elsewhere = path;
  elsewhere.port = 9;
  Switchboard board;
  const Identity me{.local_id = CommId(5), .tid = 1, .ca_guid = 1};
  ConnectionEntry& entry = board.add(Connection::connect({}, me, request()), {nullptr, {}, path, 0}, nullptr);
  const wire::CmRep rep{.local_id = CommId(6), .remote_id = CommId(5)};
  REQUIRE(board.on_message({}, {nullptr, {}, path, 0}, {1, rep}));
  REQUIRE(board.on_message({}, {nullptr, {}, elsewhere, 0}, {1, wire::CmDreq{CommId(7), CommId(5)}}));
  CHECK(entry.path.remote == path);
  REQUIRE(board.on_message({}, {nullptr, {}, elsewhere, 0}, {1, rep}));
  CHECK(entry.path.remote == elsewhere);
}

TEST_CASE("a request for a service that nobody can have is refused at once, and not sent", "[switchboard]") {
  Connection connection = Connection::connect({}, {.local_id = CommId(1)}, request());
  connection.on_impossible_service({});
  CHECK(connection.next_event() == ConnectionEvent(Rejected{.reason = wire::RejReason::InvalidServiceId}));
  CHECK(connection.next_message() == std::nullopt);
  CHECK(connection.is_finished());
}

TEST_CASE("a request that cannot be sent ends with the reason; another message is as good as lost", "[switchboard]") {
  Switchboard board;
  int owner = 0;
  ConnectionEntry& entry = board.add(Connection::connect({}, {.local_id = CommId(5), .tid = 1}, request()), {},
                                     reinterpret_cast<CmId*>(&owner));
  board.pump(entry, {});
  const auto first = board.next_message();
  REQUIRE(first.has_value());
  SECTION("the first time") {
    CHECK(board.on_unsendable({}, first->message, ENETUNREACH));
  }
  SECTION("when it is sent again") {
    board.on_deadline(*board.next_deadline());
    CHECK(board.on_unsendable({}, board.next_message().value().message, ENETUNREACH));
  }
  const auto told = board.next_event();
  REQUIRE(told.has_value());
  CHECK(told->event == ConnectionEvent(Unreachable{.status = -ENETUNREACH}));
  CHECK_FALSE(board.next_deadline().has_value());
  CHECK_FALSE(board.on_unsendable({}, {1, wire::CmDreq{CommId(5), CommId(6)}}, ENETUNREACH));
  CHECK_FALSE(board.on_unsendable({}, {1, wire::CmReq{.local_id = CommId(7)}}, ENETUNREACH));
  CHECK_FALSE(board.next_event().has_value());
}

TEST_CASE("a request that finds the backlog full is forgotten, and asked again", "[switchboard]") {
  NetworkConfig config = quiet();
  config.backlog = 1;
  Willing network(config);
  std::vector<Id*> asked;
  for (int i = 0; i < 10; ++i) asked.push_back(&network.connect(0, 1));
  network.wait(seconds(60));
  for (const Id* id : asked) CHECK(id->is_established());
}

TEST_CASE("a listener that goes leaves its port to the requests it has taken, until they are answered",
          "[switchboard]") {
  Willing network;
  std::vector<Id*> taken;
  network.on_request = [&taken](Id& id) { taken.push_back(&id); };
  Id& asking = network.connect(0, 1);
  network.wait(seconds(4));
  REQUIRE(taken.size() == 1);
  network.stop_listening(1);
  Id& late = network.connect(2, 1);
  network.wait(seconds(1));
  CHECK(late.events == std::vector<ConnectionEvent>{Rejected{.reason = wire::RejReason::InvalidServiceId}});
  CHECK(asking.events.empty());
  CHECK(network.has_service_port(1));
  SECTION("accepted, and the answer is lost") {
    network.lose_next(1, 0, "REP");
    network.accept(*taken[0]);
    CHECK(network.has_service_port(1));
    network.wait(seconds(10));
    CHECK(names_of(asking) == Names{"REPLIED"});
    CHECK(taken[0]->is_established());
  }
  SECTION("refused") {
    network.reject(*taken[0]);
    network.wait(milliseconds(2));
    CHECK(asking.events == std::vector<ConnectionEvent>{Rejected{.reason = wire::RejReason::ConsumerDefined}});
  }
  SECTION("destroyed") {
    network.destroy(*taken[0]);
    network.wait(milliseconds(2));
    CHECK(asking.events == std::vector<ConnectionEvent>{Rejected{.reason = wire::RejReason::ConsumerDefined}});
  }
  SECTION("given up by the peer") {
    network.destroy(asking);
    network.wait(milliseconds(2));
    CHECK(names_of(*taken[0]) == Names{"REJECTED"});
  }
  CHECK_FALSE(network.has_service_port(1));
}

TEST_CASE("a listener that goes frees its port at once when all it has taken is answered", "[switchboard]") {
  Willing network;
  network.connected(0, 1);
  network.stop_listening(1);
  CHECK_FALSE(network.has_service_port(1));
}

TEST_CASE("nothing is kept of connections that are over", "[switchboard]") {
  Willing network;
  auto [active, passive] = network.connected(0, 1);
  network.destroy(*active);
  network.destroy(*passive);
  REQUIRE(network.run_until_idle(seconds(60)));
  for (std::size_t host = 0; host < 3; ++host) CHECK(network.connections(host) == 0);
}

}  // namespace
}  // namespace nicless::cm::test
