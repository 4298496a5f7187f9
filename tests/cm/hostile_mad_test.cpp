// SPDX-License-Identifier: MIT
// Goal: what arrives at a listener's port and is no message of a connection manager, or one that lies, is dropped or
// refused, reaches no program, and harms nobody. Method: a plain socket sends to a listener of the built library; after
// that a connection forms as ever. The fuzzer hostile_mads says the same of every message there is.
#include <catch2/catch.hpp>

#include "cm/messages.h"
#include "tests/cm/rdma_fixture.h"
#include "tests/provider/wire_peer.h"
#include "wire/addressing.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/opcode.h"
#include "wire/ud/gsi.h"

namespace nicless::cm::test {
namespace {

using Bytes = std::vector<std::byte>;
using wire::CommId;

wire::Endpoint loopback(std::uint16_t port) {
  wire::Endpoint endpoint;
  auto& bytes = endpoint.address.bytes;
  bytes[10] = bytes[11] = std::byte{0xff};
  bytes[12] = std::byte{127};
  bytes[15] = std::byte{1};
  endpoint.port = port;
  return endpoint;
}

Bytes bytes_of(const wire::CmMessage& message) {
  const auto mad = wire::encode(message);
  return {mad.begin(), mad.end()};
}

wire::CmReq request(std::uint16_t port) {
  wire::CmReq req = build_request(
      {.local = loopback(9), .remote = loopback(port), .end = {.qpn = queue::Qpn(0x4711)}, .path_mtu = 3}, {});
  req.local_id = CommId(0x77);
  return req;
}

struct Attack {
  explicit Attack(std::uint16_t port) : target(loopback(port)) {}
  explicit Attack(const wire::Endpoint& endpoint) : target(endpoint) {}

  void send(const Bytes& mad, std::uint32_t qkey = wire::kGsiQkey) const {
    wire::Headers headers;
    headers.bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Op::SendOnly);
    headers.bth.dest_qp = wire::kGsiQpn;
    headers.deth = {qkey, wire::kGsiQpn};
    peer.send_bytes(target, peer.packet(target, headers, mad));
  }
  void send(const wire::CmMessage& message) const { send(bytes_of(message)); }
  // A good request but for one byte.
  void send_spoilt(std::size_t at, std::uint8_t value) const {
    Bytes mad = bytes_of({1, request(target.port)});
    mad[at] = static_cast<std::byte>(value);
    send(mad);
  }
  wire::CmMessage answer() const {
    const nicless::test::Arrival arrival = peer.receive();
    REQUIRE(arrival.payload.size() == wire::CmMessage::kSize);
    const auto decoded = wire::decode_cm(std::span(arrival.payload).first<wire::CmMessage::kSize>());
    REQUIRE(decoded);
    return decoded.message;
  }

  const wire::Endpoint target;
  const nicless::test::WirePeer peer{loopback(0)};
};

TEST_CASE("what is no message of a connection manager is dropped, and lies are refused", "[rdma]") {
  Channel passive;
  Listener listener(passive);
  const Attack attack(listener.port());

  attack.send(Bytes(128));
  attack.send(bytes_of({1, request(listener.port())}), 0x1234);
  attack.send_spoilt(0, 2);      // base version
  attack.send_spoilt(1, 4);      // class
  attack.send_spoilt(2, 1);      // class version
  attack.send_spoilt(3, 0x81);   // method
  attack.send_spoilt(17, 0xff);  // attribute
  attack.send({1, wire::CmDrep{.local_id = CommId(5), .remote_id = CommId(6)}});
  attack.send({1, wire::CmRej{.local_id = CommId(5), .remote_id = CommId(6)}});
  attack.send({1, wire::CmMra{.local_id = CommId(5), .remote_id = CommId(6)}});

  wire::CmReq nameless = request(listener.port());
  nameless.private_data = {};
  nameless.private_data[0] = std::byte{0x80};
  attack.send({2, nameless});
  CHECK(attack.answer() == wire::refusal({2, nameless}, wire::RejReason::Unsupported));
  wire::CmReq elsewhere = request(listener.port());
  elsewhere.service = wire::service_id(wire::PortSpace::Ib, listener.port());
  attack.send({3, elsewhere});
  CHECK(attack.answer() == wire::refusal({3, elsewhere}, wire::RejReason::InvalidServiceId));
  wire::CmReq datagram = request(listener.port());
  datagram.transport = wire::CmService::Rd;
  attack.send({4, datagram});
  CHECK(attack.answer() == wire::refusal({4, datagram}, wire::RejReason::InvalidTransportType));
  const wire::CmMessage forged{5, wire::CmDreq{.local_id = CommId(5), .remote_id = CommId(6)}};
  attack.send(forged);
  CHECK(attack.answer() == *wire::answer_of_nobody(forged));

  CHECK_FALSE(passive.has_event());
  Channel active;
  rdma_cm_id* id = resolved(active, ipv4("127.0.0.1", listener.port()));
  rdma_conn_param param{};
  REQUIRE(rdma_connect(id, &param) == 0);
  const Seen asked = passive.next(RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(asked.conn.qp_num == id->qp->qp_num);
  destroy(asked.id);
  active.next(RDMA_CM_EVENT_REJECTED);
  destroy(id);
}

TEST_CASE("a request to an address of this machine that no device has is refused with that reason", "[rdma]") {
  Channel passive;
  Listener listener(passive, ipv4("0.0.0.0", 0));
  wire::Endpoint other = loopback(listener.port());
  other.address.bytes[15] = std::byte{9};
  const Attack attack(other);
  const wire::CmMessage asked{1, request(listener.port())};
  attack.send(asked);
  CHECK(attack.answer() == wire::refusal(asked, wire::RejReason::InvalidGid));
  CHECK_FALSE(passive.has_event());
}

}  // namespace
}  // namespace nicless::cm::test
