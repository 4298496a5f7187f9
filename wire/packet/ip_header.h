// SPDX-License-Identifier: MIT
// IP and UDP headers as bytes. The kernel writes the real ones; these are what the ICRC assumes of them (icrc.cpp) and
// what a trace shows (pcapng.cpp). RFC 791, RFC 8200, RFC 768.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/packet/byte_io.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

inline constexpr std::size_t kIpv4HeaderBytes = 20;
inline constexpr std::size_t kIpv6HeaderBytes = 40;
inline constexpr std::size_t kUdpHeaderBytes = 8;
inline constexpr std::uint8_t kIpProtocolUdp = 17;
inline constexpr std::size_t kUdpPayloadBytesMax = 0xffff - kIpv4HeaderBytes - kUdpHeaderBytes;

// What lies between two endpoints.
struct UdpFlow {
  Endpoint from;
  Endpoint to;
  std::size_t payload_bytes = 0;
};

struct Ipv4Fields {
  std::uint8_t traffic_class = 0;
  std::uint16_t id = 0;
  std::uint8_t hop_limit = 0;
  std::uint16_t checksum = 0;
};

// Don't-fragment is set, as RoCE sockets have it.
inline void write_ipv4(const UdpFlow& flow, const Ipv4Fields& fields, std::span<std::byte, kIpv4HeaderBytes> out) {
  FixedWriter<kIpv4HeaderBytes> w(out);
  w.u8<0>(0x45);  // version 4, five words
  w.u8<1>(fields.traffic_class);
  w.u16<2>(static_cast<std::uint16_t>(kIpv4HeaderBytes + kUdpHeaderBytes + flow.payload_bytes));
  w.u16<4>(fields.id);
  w.u16<6>(0x4000);  // don't fragment
  w.u8<8>(fields.hop_limit);
  w.u8<9>(kIpProtocolUdp);
  w.u16<10>(fields.checksum);
  std::ranges::copy(std::span(flow.from.address.bytes).last<4>(), w.view<12, 4>().begin());
  std::ranges::copy(std::span(flow.to.address.bytes).last<4>(), w.view<16, 4>().begin());
}

struct Ipv6Fields {
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t hop_limit = 0;
};

inline void write_ipv6(const UdpFlow& flow, const Ipv6Fields& fields, std::span<std::byte, kIpv6HeaderBytes> out) {
  FixedWriter<kIpv6HeaderBytes> w(out);
  w.u32<0>(0x60000000u | std::uint32_t{fields.traffic_class} << 20 | fields.flow_label);
  w.u16<4>(static_cast<std::uint16_t>(kUdpHeaderBytes + flow.payload_bytes));
  w.u8<6>(kIpProtocolUdp);
  w.u8<7>(fields.hop_limit);
  w.array<8>(flow.from.address.bytes);
  w.array<24>(flow.to.address.bytes);
}

inline void write_udp(const UdpFlow& flow, std::uint16_t checksum, std::span<std::byte, kUdpHeaderBytes> out) {
  FixedWriter<kUdpHeaderBytes> w(out);
  w.u16<0>(flow.from.port);
  w.u16<2>(flow.to.port);
  w.u16<4>(static_cast<std::uint16_t>(kUdpHeaderBytes + flow.payload_bytes));
  w.u16<6>(checksum);
}

}  // namespace nicless::wire
