// SPDX-License-Identifier: MIT
#include "cm/address.h"

#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

const sockaddr_in& v4(const sockaddr& address) {
  return reinterpret_cast<const sockaddr_in&>(address);
}
const sockaddr_in6& v6(const sockaddr& address) {
  return reinterpret_cast<const sockaddr_in6&>(address);
}
const sockaddr_ib& ib(const sockaddr& address) {
  return reinterpret_cast<const sockaddr_ib&>(address);
}

template <typename Address>
std::span<const std::byte, sizeof(Address)> bytes_of(const Address& address) {
  return std::as_bytes(std::span<const Address, 1>(&address, 1));
}

constexpr std::uint64_t kSidPort = 0xffff;  // of a service id
constexpr std::uint64_t kSidPortSpace = ~kSidPort;

}  // namespace

socklen_t address_bytes(sa_family_t family) {
  if (family == AF_INET) return sizeof(sockaddr_in);
  if (family == AF_INET6) return sizeof(sockaddr_in6);
  if (family == AF_IB) return sizeof(sockaddr_ib);
  return 0;
}

socklen_t address_bytes(const sockaddr* address) {
  return address == nullptr ? 0 : address_bytes(address->sa_family);
}

sockaddr_storage copy_address(const sockaddr& address) {
  sockaddr_storage copy{};
  std::memcpy(&copy, &address, address_bytes(address.sa_family));
  return copy;
}

bool is_any(const sockaddr& address) {
  if (address.sa_family == AF_INET) return v4(address).sin_addr.s_addr == INADDR_ANY;
  if (address.sa_family == AF_IB) return to_gid(address) == wire::Gid{};
  return IN6_IS_ADDR_UNSPECIFIED(&v6(address).sin6_addr);
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) return ntohl(v4(address).sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(address).sin6_addr);
}

bool is_multicast(const sockaddr& address) {
  if (address.sa_family == AF_INET) return IN_MULTICAST(ntohl(v4(address).sin_addr.s_addr));
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&v6(address).sin6_addr);
}

std::uint16_t port_of(const sockaddr& address) {
  if (address.sa_family == AF_INET) return ntohs(v4(address).sin_port);
  if (address.sa_family == AF_INET6) return ntohs(v6(address).sin6_port);
  if (address.sa_family == AF_IB) return static_cast<std::uint16_t>(be64toh(ib(address).sib_sid));
  return 0;
}

void set_port(sockaddr_storage& address, std::uint16_t port) {
  if (address.ss_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (address.ss_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

wire::Gid to_gid(const sockaddr& address) {
  if (address.sa_family == AF_INET) return wire::from_ipv4(bytes_of(v4(address).sin_addr));
  if (address.sa_family == AF_INET6) return wire::from_bytes(bytes_of(v6(address).sin6_addr));
  if (address.sa_family == AF_IB) return wire::from_raw(ib(address).sib_addr.sib_raw);
  return {};
}

sockaddr_storage to_address(const wire::Gid& gid, std::uint16_t port) {
  sockaddr_storage address{};
  if (gid.is_ipv4()) {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    std::memcpy(&in.sin_addr, gid.bytes.data() + 12, 4);
  } else {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
    in6.sin6_family = AF_INET6;
    std::memcpy(&in6.sin6_addr, gid.bytes.data(), 16);
  }
  set_port(address, port);
  return address;
}

sockaddr_ib to_ib_address(const wire::Gid& gid, std::uint16_t port_space, std::uint16_t port) {
  sockaddr_ib address{};
  address.sib_family = AF_IB;
  address.sib_pkey = htons(0xffff);
  wire::to_raw(gid, address.sib_addr.sib_raw);
  address.sib_sid = htobe64(std::uint64_t{port_space} << 16 | port);
  address.sib_sid_mask = htobe64((port_space != 0 ? kSidPortSpace : 0) | (port != 0 ? kSidPort : 0));
  return address;
}

std::uint16_t port_space_of(const sockaddr& address) {
  return static_cast<std::uint16_t>((be64toh(ib(address).sib_sid & ib(address).sib_sid_mask)) >> 16);
}

sockaddr_storage loopback(sa_family_t family, std::uint16_t port) {
  sockaddr_storage address{};
  address.ss_family = family;
  if (family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
  }
  set_port(address, port);
  return address;
}

sockaddr_storage any_address(sa_family_t family, std::uint16_t port) {
  sockaddr_storage address{};
  address.ss_family = family;
  set_port(address, port);
  return address;
}

std::string to_string(const sockaddr& address) {
  return wire::to_string(wire::Endpoint{to_gid(address), port_of(address)});
}

}  // namespace nicless::cm
