// SPDX-License-Identifier: MIT
// Goal: the source ports are those that the Linux kernel chose for the same queue pairs. Method: every captured packet
// of a capture with one connection in it, whose numbers and flow label (of its REQ, else none) the capture tells; every
// captured datagram; and labels by hand.
#include "wire/qp/source_port.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/support/golden.h"
#include "wire/packet/mad.h"
#include "wire/packet/packet.h"

namespace nicless::wire {
namespace {

// What a capture tells about the connection in it: the numbers that packets from each address go to, and flow labels.
struct Capture {
  std::map<Gid, std::set<queue::Qpn>> to;
  std::set<std::uint32_t> labels;

  bool has_one_connection() const {
    if (to.size() != 2 || labels.size() > 1) return false;
    return to.begin()->second.size() == 1 && to.rbegin()->second.size() == 1;
  }
  std::uint32_t label() const { return labels.empty() ? 0 : *labels.begin(); }
  std::uint16_t port_from(const Gid& from) const {
    const auto& [first_from, first_to] = *to.begin();
    const auto& [second_from, second_to] = *to.rbegin();
    const queue::Qpn peer = *(first_from == from ? first_to : second_to).begin();
    const queue::Qpn own = *(first_from == from ? second_to : first_to).begin();
    return connection_source_port(label(), own, peer);
  }
};

bool is_connected(const PacketView& packet) {
  const OpcodeInfo* info = find_opcode(packet.headers.bth.opcode);
  return info->service == Service::Rc || info->service == Service::Uc;
}

std::optional<CmReq> request_in(const PacketView& packet) {
  if (is_connected(packet) || packet.payload.size() != CmMessage::kSize) return std::nullopt;
  const DecodedCm cm = decode_cm(packet.payload.first<CmMessage::kSize>());
  if (!cm || !std::holds_alternative<CmReq>(cm.message.body)) return std::nullopt;
  return std::get<CmReq>(cm.message.body);
}

std::string file_of(const test::GoldenPacket& packet) {
  return packet.where.substr(0, packet.where.find(':'));
}

TEST_CASE("packets of a connection come from the port that the kernel chose", "[source_port]") {
  std::map<std::string, Capture> captures;
  const auto packets = test::golden_packets();
  for (const test::GoldenPacket& golden : packets) {
    const Decoded decoded = decode(golden.bytes);
    Capture& capture = captures[file_of(golden)];
    if (is_connected(decoded.packet)) capture.to[golden.from.address].insert(decoded.packet.headers.bth.dest_qp);
    if (const auto req = request_in(decoded.packet)) capture.labels.insert(req->primary.flow_label);
  }
  std::size_t without_label = 0, with_label = 0;
  for (const test::GoldenPacket& golden : packets) {
    const Capture& capture = captures[file_of(golden)];
    const Decoded decoded = decode(golden.bytes);
    if (!capture.has_one_connection() || !is_connected(decoded.packet)) continue;
    CAPTURE(golden.where);
    CHECK(golden.from.port == capture.port_from(golden.from.address));
    ++(capture.label() == 0 ? without_label : with_label);
  }
  CHECK(without_label > 100);
  CHECK(with_label > 100);
}

TEST_CASE("datagrams come from the port that the kernel chose", "[source_port]") {
  std::size_t compared = 0;
  for (const test::GoldenPacket& golden : test::golden_packets()) {
    const Decoded decoded = decode(golden.bytes);
    if (is_connected(decoded.packet)) continue;
    CAPTURE(golden.where);
    CHECK(golden.from.port == datagram_source_port(0, decoded.packet.headers.deth.src_qp));
    ++compared;
  }
  CHECK(compared > 100);
}

TEST_CASE("a flow label chooses the port, of both ends and whatever the numbers", "[source_port]") {
  CHECK(source_port_of(0x00001) == 0xc001);
  CHECK(source_port_of(0x04001) == 0xc000);  // bits 14 to 19 fold onto the lowest six
  CHECK(source_port_of(0xfffff) == 0xffc0);
  CHECK(source_port_of(0x100001) == 0xc001);  // 20 bits count
  CHECK(connection_source_port(0x12345, queue::Qpn(17), queue::Qpn(18)) == source_port_of(0x12345));
  CHECK(datagram_source_port(0x12345, queue::Qpn(17)) == source_port_of(0x12345));
  CHECK(connection_source_port(0, queue::Qpn(17), queue::Qpn(9000)) ==
        connection_source_port(0, queue::Qpn(9000), queue::Qpn(17)));
}

}  // namespace
}  // namespace nicless::wire
