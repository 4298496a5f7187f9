// SPDX-License-Identifier: MIT
// Goal: traffic class and hop limit of the address vector stand in the IP header of every packet of a connection, those
// that answer included, over IPv4 and IPv6: ibv_modify_qp(3), IBTA A17.4.5. (Of datagrams: datagram_test.cpp.)
// Method: the other end of the connection is a plain socket, which tells the header's fields and sends by hand.
#include <catch2/catch.hpp>

#include "tests/provider/verbs_pair.h"
#include "tests/provider/wire_peer.h"
#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::test;

namespace {

constexpr wire::IpOptions kMarked{0x62, 17};
constexpr std::uint32_t kPsn = 0xfffff0;

wire::Gid loopback(bool is_ipv4) {
  return is_ipv4 ? ipv4(127, 0, 0, 1) : gid_of("00000000000000000000000000000001");
}

int index_of(Device& device, const wire::Gid& gid) {
  for (int index = 0; index < 64; ++index) {
    ibv_gid found{};
    if (ibv_query_gid(device.context, 1, index, &found) != 0) return -1;
    if (std::memcmp(found.raw, gid.bytes.data(), sizeof found.raw) == 0) return index;
  }
  return -1;
}

// A queue pair in RTS whose peer is the socket: the number of the peer's queue pair holds the socket's port.
struct Connection {
  Connection(ibv_qp_type type, const wire::Gid& address)
      : gid_index(index_of(device, address)), peer({address, 0}), qp(device, attr_of(type)) {
    if (gid_index < 0) return;  // this machine has no such address
    REQUIRE(qp.to_init() == 0);
    const std::uint32_t connected = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    const std::uint32_t reliable = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_256;
    attr.dest_qp_num = std::uint32_t{peer.here().port} << 8 | 7;
    attr.rq_psn = kPsn;
    attr.max_dest_rd_atomic = 4;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    std::memcpy(attr.ah_attr.grh.dgid.raw, address.bytes.data(), 16);
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
    attr.ah_attr.grh.traffic_class = kMarked.traffic_class;
    attr.ah_attr.grh.hop_limit = kMarked.hop_limit;
    REQUIRE(ibv_modify_qp(qp.qp, &attr, static_cast<int>(type == IBV_QPT_RC ? connected | reliable : connected)) == 0);
    if (type == IBV_QPT_RC) {
      REQUIRE(qp.to_rts() == 0);
    } else {
      attr.qp_state = IBV_QPS_RTS;
      attr.sq_psn = kPsn;
      REQUIRE(ibv_modify_qp(qp.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
    }
  }

  ibv_qp_init_attr attr_of(ibv_qp_type type) {
    ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
    attr.qp_type = type;
    return attr;
  }
  wire::Endpoint own() const { return {peer.here().address, static_cast<std::uint16_t>(qp.qp->qp_num >> 8)}; }
  wire::Headers headers(wire::Op op, std::uint32_t psn) const {
    wire::Headers headers;
    headers.bth.opcode = wire::opcode_of(wire::Service::Rc, op);
    headers.bth.dest_qp = queue::Qpn(qp.qp->qp_num);
    headers.bth.psn = wire::Psn(psn);
    headers.bth.ack_req = true;
    return headers;
  }

  Device device;
  int gid_index;
  WirePeer peer;
  Cq cq{device};
  Memory memory{device, 4096};
  Qp qp;
};

}  // namespace

TEST_CASE("each packet of a message has the traffic class and hop limit of the connection", "[ip_header]") {
  const ibv_qp_type type = GENERATE(IBV_QPT_RC, IBV_QPT_UC);
  const wire::Gid address = loopback(GENERATE(true, false));
  CAPTURE(type, to_string(address));
  Connection c(type, address);
  if (c.gid_index < 0) return;
  REQUIRE(c.qp.post_send(1, {c.memory.sge(0, 600)}, 0) == 0);
  for (std::uint32_t packet = 0; packet < 3; ++packet) {
    const Arrival arrival = c.peer.receive();
    CHECK(arrival.headers.bth.psn == wire::Psn(kPsn + packet));
    CHECK(arrival.ip == kMarked);
    CHECK(arrival.from == c.own());
  }
}

TEST_CASE("acknowledgements and read responses have them, too", "[ip_header]") {
  const wire::Gid address = loopback(GENERATE(true, false));
  CAPTURE(to_string(address));
  Connection c(IBV_QPT_RC, address);
  if (c.gid_index < 0) return;
  c.peer.send_bytes(c.own(), c.peer.packet(c.own(), c.headers(wire::Op::WriteOnly, kPsn), {}));
  const Arrival acknowledgement = c.peer.receive();
  CHECK(acknowledgement.headers.bth.opcode == wire::opcode_of(wire::Service::Rc, wire::Op::Acknowledge));
  CHECK(acknowledgement.ip == kMarked);

  wire::Headers read = c.headers(wire::Op::ReadRequest, kPsn + 1);
  read.reth = {reinterpret_cast<std::uint64_t>(c.memory.bytes.data()), queue::RKey(c.memory.mr->rkey), 100};
  c.peer.send_bytes(c.own(), c.peer.packet(c.own(), read, {}));
  const Arrival response = c.peer.receive();
  CHECK(response.headers.bth.opcode == wire::opcode_of(wire::Service::Rc, wire::Op::ReadResponseOnly));
  CHECK(response.payload.size() == 100);
  CHECK(response.ip == kMarked);
}
