// SPDX-License-Identifier: MIT
// Goal: in strict RoCE v2 mode a process that uses libibverbs alone is a whole RoCE v2 host: its QP 1 answers a
// connection manager as the Linux kernel does where nobody listens, and what is no packet changes nothing.
// Method: the variables NICLESS_ROCEV2 and NICLESS_DEVICES are the process's (meson.build). The peer is a plain socket
// at another loopback address, on port 4791; its packets are made by hand, and answers are waited for, bounded.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "tests/provider/verbs_pair.h"
#include "tests/support/bytes.h"
#include "wire/addressing.h"
#include "wire/packet/icrc.h"
#include "wire/packet/mad.h"
#include "wire/packet/packet.h"
#include "wire/ud/gsi.h"

using namespace nicless;
using namespace nicless::test;

namespace {

const wire::Endpoint kProcess{ipv4(127, 47, 200, 1), wire::kRoceUdpPort};  // as NICLESS_DEVICES has it
const wire::Endpoint kPeer{ipv4(127, 47, 200, 2), wire::kRoceUdpPort};

// A RoCE v2 host that says what it is told to.
class Peer {
 public:
  Peer() {
    sockaddr_in own = name_of(kPeer);
    const int probe = IP_PMTUDISC_PROBE;  // don't-fragment, and so the identification is 0
    REQUIRE(fd_ >= 0);
    REQUIRE(setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) == 0);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own) == 0);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void send(const std::vector<std::byte>& bytes) const {
    sockaddr_in to = name_of(kProcess);
    REQUIRE(sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to) ==
            static_cast<ssize_t>(bytes.size()));
  }

  // The next message of the process's connection manager, from QP 1 to QP 1.
  wire::CmMessage answer() const {
    std::vector<std::byte> bytes(2048);
    pollfd waited{fd_, POLLIN, 0};
    const auto patience = std::chrono::milliseconds(kPatience);
    REQUIRE(poll(&waited, 1, static_cast<int>(patience.count())) == 1);
    sockaddr_in from{};
    socklen_t from_bytes = sizeof from;
    const ssize_t got = recvfrom(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_bytes);
    REQUIRE(got > 0);
    bytes.resize(static_cast<std::size_t>(got));
    const wire::Endpoint source{kProcess.address, ntohs(from.sin_port)};
    CHECK(wire::check_icrc({bytes, source, kPeer, {}}).good);
    const wire::Decoded decoded = wire::decode(bytes);
    REQUIRE(decoded);
    CHECK(decoded.packet.headers.bth.dest_qp == wire::kGsiQpn);
    CHECK(decoded.packet.headers.deth == wire::Deth{wire::kGsiQkey, wire::kGsiQpn});
    REQUIRE(decoded.packet.payload.size() == wire::CmMessage::kSize);
    const auto message = wire::decode_cm(decoded.packet.payload.first<wire::CmMessage::kSize>());
    REQUIRE(message);
    return message.message;
  }

 private:
  static sockaddr_in name_of(const wire::Endpoint& endpoint) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(endpoint.port);
    std::memcpy(&name.sin_addr, endpoint.address.bytes.data() + 12, 4);
    return name;
  }

  const int fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

std::vector<std::byte> packet_of(const wire::MadBytes& mad) {
  wire::Gsi gsi;
  gsi.post({kPeer, kProcess, {}, mad});
  wire::OutDatagram out;
  REQUIRE(gsi.next_datagram(out));
  out.from = kPeer;
  wire::seal(out, 0);
  return wire::to_bytes(out);
}

std::vector<std::byte> packet_of(const wire::CmMessage& message) {
  return packet_of(wire::encode(message));
}

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

}  // namespace

TEST_CASE("QP 1 refuses a connection where nobody listens", "[.][strict]") {
  const Peer peer;
  const Program program;
  peer.send(packet_of(request()));
  CHECK(peer.answer() == no_such_service());
}

TEST_CASE("QP 1 has no datagram service to offer", "[.][strict]") {
  const Peer peer;
  const Program program;
  const wire::ServiceId service = wire::service_id(wire::PortSpace::Udp, 7174);
  peer.send(packet_of(wire::CmMessage{5, wire::CmSidrReq{.request_id = 9, .service = service}}));
  CHECK(peer.answer() ==
        wire::CmMessage{
            5, wire::CmSidrRep{.request_id = 9, .status = wire::SidrStatus::InvalidServiceId, .service = service}});
}

TEST_CASE("QP 1 confirms the release of a connection that it does not know", "[.][strict]") {
  const Peer peer;
  const Program program;
  const wire::CommId theirs(3), ours(4);
  peer.send(packet_of(wire::CmMessage{6, wire::CmDreq{.local_id = theirs, .remote_id = ours}}));
  CHECK(peer.answer() == wire::CmMessage{6, wire::CmDrep{.local_id = ours, .remote_id = theirs}});
}

TEST_CASE("what QP 1 cannot answer gets no answer, and the next question does", "[.][strict]") {
  const Peer peer;
  const Program program;
  wire::MadBytes foreign = wire::encode(request());
  foreign[1] = std::byte{0x04};  // performance management
  peer.send(packet_of(foreign));
  wire::MadBytes unknown = wire::encode(request());
  unknown[17] = std::byte{0xff};  // no such message
  peer.send(packet_of(unknown));
  std::vector<std::byte> broken = packet_of(request());
  broken[100] ^= std::byte{1};  // and so the ICRC is wrong
  peer.send(broken);
  broken.resize(50);
  peer.send(broken);
  peer.send(packet_of(wire::CmMessage{7, wire::CmRtu{}}));
  const wire::CommId theirs(5);
  peer.send(packet_of(wire::CmMessage{8, wire::CmDreq{.local_id = theirs}}));
  CHECK(peer.answer() == wire::CmMessage{8, wire::CmDrep{.remote_id = theirs}});
}
