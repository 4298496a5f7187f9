// SPDX-License-Identifier: MIT
// Goal: in strict RoCE v2 mode a process that uses libibverbs alone is a whole RoCE v2 host: its QP 1 answers a
// connection manager as the Linux kernel does where nobody listens, what is no packet changes nothing, and its packets
// go to port 4791 from the source ports that Linux would choose, with the traffic class and hop limit of their path.
// Method: the variables NICLESS_ROCEV2 and NICLESS_DEVICES are the process's (meson.build). The peer is a plain socket
// at another loopback address, on port 4791; its packets are made by hand, and answers are waited for, bounded.
#include <net/if.h>

#include <catch2/catch.hpp>
#include <vector>

#include "tests/provider/datagrams.h"
#include "tests/provider/verbs_pair.h"
#include "tests/provider/wire_peer.h"
#include "tests/support/bytes.h"
#include "wire/addressing.h"
#include "wire/packet/mad.h"
#include "wire/qp/source_port.h"
#include "wire/ud/gsi.h"

using namespace nicless;
using namespace nicless::test;

namespace {

const wire::Endpoint kProcess{ipv4(127, 47, 200, 1), wire::kRoceUdpPort};  // as NICLESS_DEVICES has it
const wire::Endpoint kPeer{ipv4(127, 47, 200, 2), wire::kRoceUdpPort};
const wire::Endpoint kGroup{ipv4(239, 47, 200, 1), wire::kRoceUdpPort};
constexpr wire::IpOptions kMarked{0x62, 17};
constexpr std::uint16_t kMadSourcePort = 55410;  // Soft-RoCE's

struct Peer : WirePeer {
  Peer() : WirePeer(kPeer) {}

  void send(const std::vector<std::byte>& bytes) const { send_bytes(kProcess, bytes); }
  std::vector<std::byte> packet_of(const wire::MadBytes& mad) const {
    wire::Headers headers;
    headers.bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Op::SendOnly);
    headers.bth.dest_qp = wire::kGsiQpn;
    headers.deth = {wire::kGsiQkey, wire::kGsiQpn};
    return packet(kProcess, headers, mad);
  }
  std::vector<std::byte> packet_of(const wire::CmMessage& message) const { return packet_of(wire::encode(message)); }

  // The next message of the process's connection manager, from QP 1 to QP 1.
  wire::CmMessage answer() const {
    const Arrival arrival = receive();
    CHECK(arrival.from == wire::Endpoint{kProcess.address, kMadSourcePort});
    CHECK(arrival.headers.bth.dest_qp == wire::kGsiQpn);
    CHECK(arrival.headers.deth == wire::Deth{wire::kGsiQkey, wire::kGsiQpn});
    REQUIRE(arrival.payload.size() == wire::CmMessage::kSize);
    const auto message = wire::decode_cm(std::span(arrival.payload).first<wire::CmMessage::kSize>());
    REQUIRE(message);
    return message.message;
  }
};

wire::CmMessage request() {
  return {0x1122334455667788, wire::CmReq{.local_id = wire::CommId(0x77),
                                          .service = wire::service_id(wire::PortSpace::Tcp, 7471),
                                          .local_qpn = queue::Qpn(0x123)}};
}

wire::CmMessage no_such_service() {
  return {0x1122334455667788, wire::CmRej{.remote_id = wire::CommId(0x77),
                                          .answered = wire::CmAnswered::Req,
                                          .reason = wire::RejReason::InvalidServiceId}};
}

// An open device with a queue pair: what ibv_rc_pingpong has.
struct Program {
  Device device;
  Cq cq{device};
  Qp qp{device, rc_attr(cq.cq, cq.cq)};
};

ibv_ah_attr path_to(const wire::Gid& gid, std::uint32_t flow_label) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  std::memcpy(attr.grh.dgid.raw, gid.bytes.data(), sizeof attr.grh.dgid.raw);
  attr.grh.flow_label = flow_label;
  attr.grh.traffic_class = kMarked.traffic_class;
  attr.grh.hop_limit = kMarked.hop_limit;
  return attr;
}

void connect(Qp& qp, std::uint32_t peer_qpn, std::uint32_t flow_label) {
  REQUIRE(qp.to_init() == 0);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer_qpn;
  attr.rq_psn = 5;
  attr.max_dest_rd_atomic = 1;
  attr.ah_attr = path_to(kPeer.address, flow_label);
  REQUIRE(ibv_modify_qp(qp.qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  REQUIRE(qp.to_rts() == 0);
}

// What the peer got from the address and port that it should come from.
void check_source(const Arrival& arrival, std::uint16_t port) {
  CHECK(arrival.from == wire::Endpoint{kProcess.address, port});
  CHECK(arrival.ip == kMarked);
}

}  // namespace

TEST_CASE("QP 1 refuses a connection where nobody listens", "[.][strict]") {
  const Peer peer;
  const Program program;
  peer.send(peer.packet_of(request()));
  CHECK(peer.answer() == no_such_service());
}

TEST_CASE("QP 1 has no datagram service to offer", "[.][strict]") {
  const Peer peer;
  const Program program;
  const wire::ServiceId service = wire::service_id(wire::PortSpace::Udp, 7174);
  peer.send(peer.packet_of(wire::CmMessage{5, wire::CmSidrReq{.request_id = 9, .service = service}}));
  CHECK(peer.answer() ==
        wire::CmMessage{
            5, wire::CmSidrRep{.request_id = 9, .status = wire::SidrStatus::InvalidServiceId, .service = service}});
}

TEST_CASE("QP 1 confirms the release of a connection that it does not know", "[.][strict]") {
  const Peer peer;
  const Program program;
  const wire::CommId theirs(3), ours(4);
  peer.send(peer.packet_of(wire::CmMessage{6, wire::CmDreq{.local_id = theirs, .remote_id = ours}}));
  CHECK(peer.answer() == wire::CmMessage{6, wire::CmDrep{.local_id = ours, .remote_id = theirs}});
}

TEST_CASE("what QP 1 cannot answer gets no answer, and the next question does", "[.][strict]") {
  const Peer peer;
  const Program program;
  wire::MadBytes foreign = wire::encode(request());
  foreign[1] = std::byte{0x04};  // performance management
  peer.send(peer.packet_of(foreign));
  wire::MadBytes unknown = wire::encode(request());
  unknown[17] = std::byte{0xff};  // no such message
  peer.send(peer.packet_of(unknown));
  std::vector<std::byte> broken = peer.packet_of(request());
  broken[100] ^= std::byte{1};  // and so the ICRC is wrong
  peer.send(broken);
  broken.resize(50);
  peer.send(broken);
  peer.send(peer.packet_of(wire::CmMessage{7, wire::CmDrep{}}));
  const wire::CommId theirs(5);
  peer.send(peer.packet_of(wire::CmMessage{8, wire::CmDreq{.local_id = theirs}}));
  CHECK(peer.answer() == wire::CmMessage{8, wire::CmDrep{.remote_id = theirs}});
}

TEST_CASE("a connection sends from the port of its flow label, or of both queue pair numbers", "[.][strict]") {
  const std::uint32_t flow_label = GENERATE(0u, 0x54321u);
  constexpr std::uint32_t kPeerQpn = 0xabcde;
  const Peer peer;
  Program program;
  Memory memory(program.device, 8192);
  connect(program.qp, kPeerQpn, flow_label);
  const queue::Qpn own(program.qp.qp->qp_num);
  const std::uint16_t port = wire::connection_source_port(flow_label, own, queue::Qpn(kPeerQpn));

  REQUIRE(program.qp.post_send(1, {memory.sge(0, 4097)}) == 0);
  for (const std::size_t bytes : {std::size_t{4096}, std::size_t{1}}) {
    const Arrival arrival = peer.receive();
    check_source(arrival, port);
    CHECK(arrival.headers.bth.dest_qp == queue::Qpn(kPeerQpn));
    CHECK(arrival.payload.size() == bytes);
  }
}

TEST_CASE("answers leave from the connection's port, too", "[.][strict]") {
  const Peer peer;
  Program program;
  connect(program.qp, 0x1234, 0x7);
  wire::Headers write;
  write.bth.opcode = wire::opcode_of(wire::Service::Rc, wire::Op::WriteOnly);
  write.bth.dest_qp = queue::Qpn(program.qp.qp->qp_num);
  write.bth.psn = wire::Psn(5);
  write.bth.ack_req = true;
  peer.send(peer.packet(kProcess, write, {}));
  const Arrival acknowledgement = peer.receive();
  CHECK(acknowledgement.headers.bth.opcode == wire::opcode_of(wire::Service::Rc, wire::Op::Acknowledge));
  check_source(acknowledgement, wire::source_port_of(0x7));
}

TEST_CASE("datagrams, to groups as well, leave from the port of their handle's flow label or of their queue pair",
          "[.][strict]") {
  const std::uint32_t flow_label = GENERATE(0u, 0x54321u);
  const Peer peer;
  const WirePeer group(kGroup);
  group.join(kGroup.address, if_nametoindex("lo"));
  Device device;
  Cq cq(device);
  Memory memory(device, 512);
  Qp qp(device, datagram_attr(cq));
  start_datagrams(qp);
  const std::uint16_t port = wire::datagram_source_port(flow_label, queue::Qpn(qp.qp->qp_num));
  for (const wire::Gid& to : {kPeer.address, kGroup.address}) {
    ibv_ah_attr attr = path_to(to, flow_label);
    ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
    REQUIRE(ah != nullptr);
    const bool is_group = to == kGroup.address;
    REQUIRE(post_datagram(qp, ah, is_group ? wire::kMulticastQpn.value() : 0x4711, memory.sge(0, 100)) == 0);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
    check_source((is_group ? group : peer).receive(), port);
    CHECK(ibv_destroy_ah(ah) == 0);
  }
}

TEST_CASE("a group is heard on port 4791 beside the port of the process, and by its own queue pairs", "[.][strict]") {
  Device device;
  Cq cq(device), sent(device);
  Memory memory(device, 512);
  Qp receiver(device, datagram_attr(cq)), sender(device, datagram_attr(sent));
  start_datagrams(receiver);
  start_datagrams(sender);
  ibv_ah_attr attr = path_to(kGroup.address, 0);
  REQUIRE(ibv_attach_mcast(receiver.qp, &attr.grh.dgid, 0) == 0);
  REQUIRE(receiver.post_recv(1, {memory.sge(0, 256)}) == 0);
  ibv_ah* const ah = ibv_create_ah(device.pd, &attr);
  REQUIRE(post_datagram(sender, ah, wire::kMulticastQpn.value(), memory.sge(256, 100)) == 0);
  const ibv_wc wc = cq.take();
  CHECK(wc.status == IBV_WC_SUCCESS);
  CHECK(wc.src_qp == sender.qp->qp_num);
  CHECK(wc.byte_len == 100 + kGrhBytes);
  CHECK(sent.take().status == IBV_WC_SUCCESS);
  CHECK(ibv_destroy_ah(ah) == 0);
  CHECK(ibv_detach_mcast(receiver.qp, &attr.grh.dgid, 0) == 0);
}
