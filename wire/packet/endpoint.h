// SPDX-License-Identifier: MIT
// Where a datagram comes from or goes to: an IP address as RoCE v2 writes it into a GID (IPv4 as ::ffff:a.b.c.d), and a
// UDP port. Addresses and ports as values; nothing here opens a socket.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace nicless::wire {

// 128 bits in network order; an IPv4 address is IPv4-mapped (RFC 4291 2.5.5.2). IBTA RoCE annex A17.4.5.2.
struct Gid {
  std::array<std::byte, 16> bytes{};
  bool is_ipv4() const { return std::memcmp(bytes.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0; }
  friend auto operator<=>(const Gid&, const Gid&) = default;
  // Of each datagram: two words instead of sixteen bytes one by one.
  friend bool operator==(const Gid& a, const Gid& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

  // What stands before an IPv4 address.
  static constexpr std::array<unsigned char, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
};

// "10.77.0.1" or "fd77::1".
std::string to_string(const Gid& gid);

struct Endpoint {
  Gid address;
  std::uint16_t port = 0;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// "10.77.0.1:4791" or "[fd77::1]:4791".
std::string to_string(const Endpoint& endpoint);

}  // namespace nicless::wire
