// SPDX-License-Identifier: MIT
// Goal: connections are found by what messages carry, and never by anything else. Method: a table, real connections.
#include "cm/connection_table.h"

#include <catch2/catch.hpp>

#include "cm/answers.h"
#include "tests/cm/pair.h"

namespace nicless::cm::test {
namespace {

wire::Endpoint endpoint(std::uint8_t last_byte, std::uint16_t port) {
  wire::Endpoint made;
  made.address.bytes[15] = std::byte{last_byte};
  made.port = port;
  return made;
}

ConnectionEntry& add_active(ConnectionTable& table, std::uint32_t id, const wire::Endpoint& remote, Instant now = {}) {
  return table.add(Connection::connect(now, {.local_id = CommId(id), .tid = id, .ca_guid = 1}, request()),
                   {nullptr, {}, remote, 0}, nullptr);
}

ConnectionEntry& add_passive(ConnectionTable& table, std::uint32_t id, std::uint32_t remote_id,
                             const wire::Endpoint& remote) {
  wire::CmReq req = request();
  req.local_id = CommId(remote_id);
  return table.add(Connection::answer({.local_id = CommId(id), .tid = id, .ca_guid = 1}, {7, req}),
                   {nullptr, {}, remote, 0}, nullptr);
}

TEST_CASE("a connection is found by its own id and by its peer's, until it is erased", "[connection_table]") {
  ConnectionTable table;
  const auto remote = endpoint(9, 1000);
  ConnectionEntry& entry = add_passive(table, 5, 77, remote);
  CHECK(table.find(CommId(5)) == &entry);
  CHECK(table.find_by_peer(remote.address, CommId(77)) == &entry);
  CHECK(table.find(CommId(77)) == nullptr);
  CHECK(table.find_by_peer(endpoint(8, 1000).address, CommId(77)) == nullptr);
  CHECK(table.at(remote) == std::vector<CommId>{CommId(5)});
  table.erase(entry);
  CHECK(table.size() == 0);
  CHECK(table.find(CommId(5)) == nullptr);
  CHECK(table.find_by_peer(remote.address, CommId(77)) == nullptr);
  CHECK(table.at(remote).empty());
}

TEST_CASE("a refused peer that asks again is a new one", "[connection_table]") {
  ConnectionTable table;
  const auto remote = endpoint(9, 1000);
  ConnectionEntry& refused = add_passive(table, 5, 77, remote);
  REQUIRE(refused.connection.reject(wire::RejReason::ConsumerDefined, {}).has_value());
  while (refused.connection.next_message()) {
  }
  table.refresh(refused);
  CHECK(table.find_by_peer(remote.address, CommId(77)) == nullptr);
  ConnectionEntry& again = add_passive(table, 6, 77, remote);
  CHECK(table.find_by_peer(remote.address, CommId(77)) == &again);
  table.erase(refused);
  CHECK(table.find_by_peer(remote.address, CommId(77)) == &again);
}

TEST_CASE("deadlines come in order and follow the connection", "[connection_table]") {
  ConnectionTable table;
  const Instant start{};
  ConnectionEntry& later = add_active(table, 1, endpoint(9, 1), start + std::chrono::milliseconds(10));
  ConnectionEntry& sooner = add_active(table, 2, endpoint(9, 1), start);
  CHECK(table.next_deadline() == start + Resend::kFirst);
  CHECK(table.next_due(start) == nullptr);
  CHECK(table.next_due(start + Resend::kFirst) == &sooner);
  sooner.connection.abandon(start);
  table.refresh(sooner);
  CHECK(table.next_due(start + Resend::kFirst * 2) == &later);
}

TEST_CASE("a peer that moves is found at its new port only", "[connection_table]") {
  ConnectionTable table;
  ConnectionEntry& entry = add_active(table, 1, endpoint(9, 7471));
  table.move(entry, endpoint(9, 50000));
  CHECK(table.at(endpoint(9, 7471)).empty());
  CHECK(table.at(endpoint(9, 50000)) == std::vector<CommId>{CommId(1)});
}

TEST_CASE("a message reaches its connection from the peer's address only", "[connection_table]") {
  ConnectionTable table;
  const auto remote = endpoint(9, 7471);
  ConnectionEntry& entry = add_active(table, 1, remote);
  const wire::CmMessage reply{1, wire::CmRep{.local_id = CommId(50), .remote_id = CommId(1)}};
  CHECK(find_addressee(table, remote.address, reply) == &entry);
  CHECK(find_addressee(table, endpoint(10, 7471).address, reply) == nullptr);
  CHECK(find_addressee(table, remote.address, {1, wire::CmRep{.local_id = CommId(50), .remote_id = CommId(2)}}) ==
        nullptr);
}

TEST_CASE("a refusal by someone who never learnt this end's id finds its connection", "[connection_table]") {
  ConnectionTable table;
  const auto remote = endpoint(9, 1000);
  ConnectionEntry& entry = add_passive(table, 5, 77, remote);
  const wire::CmMessage gone{7, wire::CmRej{.local_id = CommId(77), .reason = wire::RejReason::Timeout}};
  CHECK(find_addressee(table, remote.address, gone) == &entry);
}

}  // namespace
}  // namespace nicless::cm::test
