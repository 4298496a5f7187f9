// SPDX-License-Identifier: MIT
// Goal: packets in the middle of a message, which are made from the one before them, are what each would be alone.
// Method: messages of several packets, built by one Outbound, and packet by packet by new ones.
#include "wire/qp/outbound.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

constexpr std::uint32_t kMtu = 256;
constexpr std::uint64_t kPackets = 5;

Outbound::Numbers numbers_of(Service service, std::uint64_t message, std::uint64_t packet) {
  const std::uint64_t psn = message * kPackets + packet;
  return {service, Psn(static_cast<std::uint32_t>(psn)), psn % 3 == 0,
          queue::Srqn(static_cast<std::uint32_t>(message + 1))};
}

std::vector<std::byte> build(Outbound& outbound, const queue::Wqe& wqe, Service service, std::uint64_t message,
                             std::uint64_t packet) {
  OutDatagram out;
  REQUIRE(!outbound.build(message, wqe, packet, numbers_of(service, message, packet), out));
  return to_bytes(out);
}

}  // namespace

TEST_CASE("a packet is the same whatever was built before it", "[outbound]") {
  const Service service = GENERATE(Service::Rc, Service::Uc, Service::Xrc);
  const auto first_opcode = GENERATE(queue::SendOpcode::Send, queue::SendOpcode::WriteImm);
  const QpParts parts;
  QpAttributes attributes;
  attributes.path_mtu = kMtu;
  attributes.dest_qpn = queue::Qpn(0x8f1203);
  const std::vector<std::byte> bytes(kPackets * kMtu - GENERATE(0u, 1u, 254u), std::byte{0x5a});
  queue::Wqe wqe;
  wqe.opcode = first_opcode;
  wqe.solicited = true;
  wqe.has_inline_data = true;
  wqe.inline_data = bytes;
  wqe.length = bytes.size();

  Outbound whole(parts, attributes);
  for (std::uint64_t message = 0; message < 2; ++message) {
    for (std::uint64_t packet = 0; packet < kPackets; ++packet) {
      Outbound fresh(parts, attributes);
      CHECK(build(whole, wqe, service, message, packet) == build(fresh, wqe, service, message, packet));
    }
    wqe.opcode = queue::SendOpcode::Write;
  }
}
