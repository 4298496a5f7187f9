// SPDX-License-Identifier: MIT
#include "wire/ud/grh.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "wire/packet/byte_io.h"

namespace nicless::wire {
namespace {

constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kUdpBytes = 8;
constexpr std::uint8_t kUdpProtocol = 17;
constexpr std::uint16_t kDontFragment = 0x4000;

// RFC 1071.
std::uint16_t internet_checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    sum += (std::to_integer<std::uint32_t>(bytes[i]) << 8) | std::to_integer<std::uint32_t>(bytes[i + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

// RFC 791: version and length, TOS, total length, id, flags, TTL, protocol, checksum, source, destination.
void write_ipv4(const InDatagram& datagram, std::span<std::byte, kIpv4Bytes> out) {
  FixedWriter<kIpv4Bytes> w(out);
  w.u8<0>(0x45);
  w.u8<1>(datagram.ip.traffic_class);
  w.u16<2>(static_cast<std::uint16_t>(kIpv4Bytes + kUdpBytes + datagram.bytes.size()));
  w.u16<6>(kDontFragment);
  w.u8<8>(datagram.ip.hop_limit);
  w.u8<9>(kUdpProtocol);
  std::copy_n(datagram.from.address.bytes.begin() + 12, 4, out.begin() + 12);
  std::copy_n(datagram.to.address.bytes.begin() + 12, 4, out.begin() + 16);
  w.u16<10>(internet_checksum(out));
}

// RFC 8200: version, traffic class and flow label, payload length, next header, hop limit, source, destination.
void write_ipv6(const InDatagram& datagram, std::span<std::byte, kGrhBytes> out) {
  FixedWriter<kGrhBytes> w(out);
  w.u32<0>(0x60000000 | std::uint32_t{datagram.ip.traffic_class} << 20);
  w.u16<4>(static_cast<std::uint16_t>(kUdpBytes + datagram.bytes.size()));
  w.u8<6>(kUdpProtocol);
  w.u8<7>(datagram.ip.hop_limit);
  std::copy_n(datagram.from.address.bytes.begin(), 16, out.begin() + 8);
  std::copy_n(datagram.to.address.bytes.begin(), 16, out.begin() + 24);
}

}  // namespace

std::array<std::byte, kGrhBytes> make_grh(const InDatagram& datagram) {
  std::array<std::byte, kGrhBytes> grh{};
  if (datagram.from.address.is_ipv4()) {
    write_ipv4(datagram, std::span(grh).last<kIpv4Bytes>());
  } else {
    write_ipv6(datagram, grh);
  }
  return grh;
}

}  // namespace nicless::wire
