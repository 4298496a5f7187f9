// SPDX-License-Identifier: MIT
// Goal: what this connection manager says is what the Linux kernel's says in the same place, in every field that is not
// an id or a number of chance. Method: the kernel's captured messages go in, with its ids and numbers taken over; what
// comes out is compared whole with what it answered.
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "cm/answers.h"
#include "cm/connection.h"
#include "cm/messages.h"
#include "tests/cm/captured.h"
#include "tests/cm/kernel_like.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/mad.h"

namespace nicless::cm {
namespace {

using test::Captured;
using test::cm_messages;
using test::end_of;
using test::find;
using test::identity_of;
using test::kLifetimeThen;
using test::rebuild;

Connection connect_like(const Captured<wire::CmReq>& req, std::uint8_t lifetime = kLifetimeThen) {
  const Identity me = identity_of(req.body().local_id, req.message.tid, req.body().local_ca_guid);
  return Connection::connect(Instant{}, me, rebuild(req.body(), lifetime));
}

Connection answer_like(const Captured<wire::CmReq>& req, CommId local_id, std::uint64_t guid = 0) {
  return Connection::answer(identity_of(local_id, 0x200000000, guid), req.message);
}

const char* const kConnections[] = {
    "rping-C2",     "rping-C2-ipv6",   "rdma_server_client",  "ucmatose",     "cm-slow-accept", "rxt-ops",
    "rxt-ops-ipv6", "rxt-tos",         "rxt-ps-ib-rc",        "rnr-exceeded", "cmtime",         "ib_send_lat-cm",
    "rej-consumer", "rej-no-listener", "rej-no-listener-ipv6"};

TEST_CASE("a request holds what the kernel's holds", "[golden]") {
  for (const char* name : kConnections) {
    CAPTURE(name);
    const auto req = find<wire::CmReq>(cm_messages(name));
    Connection c = connect_like(req);
    CHECK(c.next_message() == req.message);
    CHECK_FALSE(c.next_message());
  }
}

TEST_CASE("an ACK timeout of the program's stands in the request as in the kernel's", "[golden]") {
  const auto req = find<wire::CmReq>(cm_messages("rxt-acktimeout"));
  Connection c = connect_like(req, 14 - 1);
  CHECK(c.next_message() == req.message);
}

TEST_CASE("both ends say what the kernel's ends said, from request to release", "[golden]") {
  const std::string name = GENERATE("rping-C2", "rping-C2-ipv6", "rxt-ops", "rxt-tos", "rxt-ps-ib-rc");
  CAPTURE(name);
  const auto messages = cm_messages(name);
  const auto req = find<wire::CmReq>(messages);
  const auto rep = find<wire::CmRep>(messages);
  const auto rtu = find<wire::CmRtu>(messages);
  const auto dreq = find<wire::CmDreq>(messages);
  const auto drep = find<wire::CmDrep>(messages);

  Connection active = connect_like(req);
  Connection passive = answer_like(req, rep.body().local_id, rep.body().local_ca_guid);
  CHECK(active.next_message() == req.message);
  REQUIRE(passive.accept(Instant{}, build_reply(end_of(rep.body()), rep.body().private_data)).has_value());
  CHECK(passive.next_message() == rep.message);
  active.on_message(Instant{}, rep.message);
  CHECK(active.next_event() == ConnectionEvent(Replied{rep.body()}));
  REQUIRE(active.establish().has_value());
  CHECK(active.next_message() == rtu.message);
  passive.on_message(Instant{}, rtu.message);
  CHECK(passive.next_event() == ConnectionEvent(BecameEstablished{}));

  REQUIRE(dreq.body().local_id == active.local_id());
  active.disconnect(Instant{});
  CHECK(active.next_message() == dreq.message);
  passive.on_message(Instant{}, dreq.message);
  CHECK(passive.next_message() == drep.message);
  CHECK(passive.next_event() == ConnectionEvent(Disconnected{0}));
  active.on_message(Instant{}, drep.message);
  CHECK(active.next_event() == ConnectionEvent(Disconnected{0}));
}

TEST_CASE("releases that cross end at both ends", "[golden]") {
  const auto messages = cm_messages("rdma_server_client");
  const auto req = find<wire::CmReq>(messages);
  const auto rep = find<wire::CmRep>(messages);
  const auto from_server = find<wire::CmDreq>(messages, 0);
  const auto from_client = find<wire::CmDreq>(messages, 1);
  REQUIRE(from_client.body().local_id == req.body().local_id);
  Connection active = connect_like(req);
  active.on_message(Instant{}, rep.message);
  REQUIRE(active.establish().has_value());
  active.disconnect(Instant{});
  while (active.next_message()) {
  }
  while (active.next_event()) {
  }
  active.on_message(Instant{}, from_server.message);
  CHECK(active.next_event() == ConnectionEvent(Disconnected{0}));
  CHECK(active.next_message()->tid == from_server.message.tid);
  active.on_message(Instant{}, find<wire::CmDrep>(messages).message);
  CHECK_FALSE(active.next_event());
}

TEST_CASE("what was agreed comes from the kernel's reply", "[golden]") {
  const auto messages = cm_messages("rnr-exceeded");
  Connection active = connect_like(find<wire::CmReq>(messages));
  const auto rep = find<wire::CmRep>(messages);
  active.on_message(Instant{}, rep.message);
  CHECK(active.agreement().rnr_retry_count == 3);
  CHECK(active.agreement().remote_qpn == rep.body().local_qpn);
  CHECK(active.agreement().sq_psn == rep.body().starting_psn);
  CHECK(active.agreement().ack_timeout == 19);
}

TEST_CASE("a repeated request is told to wait as the kernel tells it", "[golden]") {
  const auto messages = cm_messages("cm-slow-accept");
  const auto mra = find<wire::CmMra>(messages);
  Connection passive = answer_like(find<wire::CmReq>(messages), mra.body().local_id);
  passive.on_message(Instant{}, find<wire::CmReq>(messages, 1).message);
  CHECK(passive.next_message() == mra.message);
}

TEST_CASE("a program's refusal is the kernel's, with and without private data", "[golden]") {
  const std::string name = GENERATE("rej-consumer", "rej-destroy");
  CAPTURE(name);
  const auto messages = cm_messages(name);
  const auto rej = find<wire::CmRej>(messages);
  Connection passive = answer_like(find<wire::CmReq>(messages), rej.body().local_id);
  if (name == "rej-destroy") {
    passive.abandon(Instant{});
  } else {
    REQUIRE(passive.reject(wire::RejReason::ConsumerDefined, rej.body().private_data).has_value());
  }
  CHECK(passive.next_message() == rej.message);
}

TEST_CASE("nobody listens: refused as the kernel refuses", "[golden]") {
  const std::string name = GENERATE("rej-no-listener", "rej-no-listener-ipv6");
  CAPTURE(name);
  const auto messages = cm_messages(name);
  const auto req = find<wire::CmReq>(messages);
  const auto rej = find<wire::CmRej>(messages);
  CHECK_FALSE(refuses(req.body()));
  CHECK(refusal(req.message, wire::RejReason::InvalidServiceId) == rej.message);
  Connection active = connect_like(req);
  active.on_message(Instant{}, rej.message);
  CHECK_FALSE(active.next_event().has_value());  // asked again before it is believed
  while (const auto deadline = active.next_deadline()) active.on_deadline(*deadline);
  CHECK(active.next_event() == ConnectionEvent(Rejected{.reason = wire::RejReason::InvalidServiceId}));
}

TEST_CASE("a client that gives up says so as the kernel does", "[golden]") {
  const auto messages = cm_messages("cm-client-dies");
  Connection active = connect_like(find<wire::CmReq>(messages));
  static_cast<void>(active.next_message());
  active.abandon(Instant{});
  CHECK(active.next_message() == find<wire::CmRej>(messages).message);
}

}  // namespace
}  // namespace nicless::cm
