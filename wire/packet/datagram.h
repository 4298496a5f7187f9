// SPDX-License-Identifier: MIT
// A datagram on its way out: headers and trailer owned, the payload still where the program registered it, so that the
// kernel makes the one copy. And one that came in, with what the socket said about it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/packet/endpoint.h"
#include "wire/packet/packet.h"

namespace nicless::wire {

inline constexpr std::size_t kPayloadSpansMax = 32;  // queue::kSgeMax

// What the IP header carries beyond the addresses. IBTA A17.4.5: traffic class and hop limit come from the path.
struct IpOptions {
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  friend bool operator==(const IpOptions&, const IpOptions&) = default;
};

struct OutDatagram {
  Endpoint from;
  Endpoint to;
  IpOptions ip;
  queue::Qpn dest_qp{};  // as in the BTH: the engine gives `to` the port behind it
  std::size_t header_bytes = 0;
  std::size_t span_count = 0;
  std::size_t payload_bytes = 0;
  std::uint8_t pad_bytes = 0;
  std::array<std::byte, kHeaderBytesMax> header{};
  std::array<std::span<const std::byte>, kPayloadSpansMax> spans{};
  std::array<std::byte, kTrailerBytesMax> trailer{};  // pad zeros, then the ICRC once sealed
  // A payload that has no registered home (a MAD, an atomic's result) is kept here and a span points at it.
  std::array<std::byte, 256> own_payload{};

  std::size_t size() const { return header_bytes + payload_bytes + pad_bytes + kIcrcBytes; }
  std::span<const std::byte> header_view() const { return std::span(header).first(header_bytes); }
  std::span<const std::byte> trailer_view() const { return std::span(trailer).first(pad_bytes + kIcrcBytes); }
};

// Fills header, pad, sizes and dest_qp from `headers` and the spans already in `out`. The ICRC is missing until seal().
void finish_headers(Headers headers, OutDatagram& out);

struct InDatagram {
  std::span<const std::byte> bytes;  // UDP payload
  Endpoint from;
  Endpoint to;     // the local address it was sent to, and the local port
  IpOptions ip{};  // as received, where the socket tells (UdpSocket::tell_ip_options)
  // What the IPv4 identification probably was, which a socket does not tell: Linux numbers the segments of one datagram
  // from 0. Saves working it out from the ICRC, which takes as long as the check itself.
  std::uint16_t likely_ip_id = 0;
};

// Flattens a sealed datagram: simulation, traces, tests. Payload that the program has unmapped since reads as zeros.
std::vector<std::byte> to_bytes(const OutDatagram& datagram);

}  // namespace nicless::wire
