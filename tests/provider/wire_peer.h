// SPDX-License-Identifier: MIT
// A RoCE v2 host by hand: a plain socket that sends the packets it is given and tells everything about those that come,
// the IP header's fields included. Waiting is bounded; what arrives must be whole, with an ICRC that fits.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "tests/provider/verbs_pair.h"
#include "wire/packet/icrc.h"
#include "wire/packet/packet.h"

namespace nicless::test {

struct Arrival {
  wire::Endpoint from;
  wire::IpOptions ip;
  wire::Headers headers;
  std::vector<std::byte> payload;
};

class WirePeer {
 public:
  // Port 0: any.
  explicit WirePeer(const wire::Endpoint& at) : family_(at.address.is_ipv4() ? AF_INET : AF_INET6), here_(at) {
    REQUIRE(fd_ >= 0);
    const int probe = IP_PMTUDISC_PROBE;  // don't-fragment, and so the identification is 0
    set(IPPROTO_IP, IP_MTU_DISCOVER, probe);
    if (family_ == AF_INET) {
      set(IPPROTO_IP, IP_RECVTOS, 1);
      set(IPPROTO_IP, IP_RECVTTL, 1);
    } else {
      set(IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
      set(IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
    }
    Name own = name_of(at);
    REQUIRE(bind(fd_, &own.any, bytes_of(own)) == 0);
    socklen_t bytes = sizeof own;
    REQUIRE(getsockname(fd_, &own.any, &bytes) == 0);
    here_.port = ntohs(family_ == AF_INET ? own.v4.sin_port : own.v6.sin6_port);
  }
  ~WirePeer() { close(fd_); }
  WirePeer(const WirePeer&) = delete;
  WirePeer& operator=(const WirePeer&) = delete;

  // Of IPv4: what is bound to a group's address hears it from here on.
  void join(const wire::Gid& group, unsigned interface) const {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, group.bytes.data() + 12, 4);
    request.imr_ifindex = static_cast<int>(interface);
    REQUIRE(setsockopt(fd_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0);
  }

  const wire::Endpoint& here() const { return here_; }

  // As it is, whatever it is.
  void send_bytes(const wire::Endpoint& to, const std::vector<std::byte>& bytes) const {
    const Name name = name_of(to);
    REQUIRE(sendto(fd_, bytes.data(), bytes.size(), 0, &name.any, bytes_of(name)) ==
            static_cast<ssize_t>(bytes.size()));
  }
  // A whole packet.
  std::vector<std::byte> packet(const wire::Endpoint& to, const wire::Headers& headers,
                                std::span<const std::byte> payload) const {
    wire::OutDatagram out;
    out.from = here_;
    out.to = to;
    out.spans[0] = payload;
    out.span_count = payload.empty() ? 0 : 1;
    wire::finish_headers(headers, out);
    wire::seal(out, 0);
    return wire::to_bytes(out);
  }

  Arrival receive() const {
    pollfd waited{fd_, POLLIN, 0};
    REQUIRE(poll(&waited, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) == 1);
    std::vector<std::byte> bytes(8192);
    Name from{};
    alignas(cmsghdr) char control[256];
    iovec vector{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(fd_, &message, 0);
    REQUIRE(got > 0);
    bytes.resize(static_cast<std::size_t>(got));
    return whole(bytes, endpoint_of(from), options_of(message));
  }

 private:
  union Name {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };

  void set(int level, int name, int value) const { REQUIRE(setsockopt(fd_, level, name, &value, sizeof value) == 0); }

  static socklen_t bytes_of(const Name& name) {
    return name.any.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }
  static Name name_of(const wire::Endpoint& endpoint) {
    Name name{};
    if (endpoint.address.is_ipv4()) {
      name.v4.sin_family = AF_INET;
      name.v4.sin_port = htons(endpoint.port);
      std::memcpy(&name.v4.sin_addr, endpoint.address.bytes.data() + 12, 4);
    } else {
      name.v6.sin6_family = AF_INET6;
      name.v6.sin6_port = htons(endpoint.port);
      std::memcpy(&name.v6.sin6_addr, endpoint.address.bytes.data(), 16);
    }
    return name;
  }
  static wire::Endpoint endpoint_of(const Name& name) {
    wire::Endpoint endpoint;
    auto* const bytes = endpoint.address.bytes.data();
    if (name.any.sa_family == AF_INET) {
      bytes[10] = bytes[11] = std::byte{0xff};
      std::memcpy(bytes + 12, &name.v4.sin_addr, 4);
      endpoint.port = ntohs(name.v4.sin_port);
    } else {
      std::memcpy(bytes, &name.v6.sin6_addr, 16);
      endpoint.port = ntohs(name.v6.sin6_port);
    }
    return endpoint;
  }
  static wire::IpOptions options_of(msghdr& message) {
    wire::IpOptions ip{0xff, 0xff};
    for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
      const bool is_ipv4 = at->cmsg_level == IPPROTO_IP;
      const std::uint8_t value = *CMSG_DATA(at);  // of a byte, or of an int on a machine that begins with the low one
      if (at->cmsg_type == (is_ipv4 ? IP_TOS : IPV6_TCLASS)) ip.traffic_class = value;
      if (at->cmsg_type == (is_ipv4 ? IP_TTL : IPV6_HOPLIMIT)) ip.hop_limit = value;
    }
    return ip;
  }
  Arrival whole(const std::vector<std::byte>& bytes, const wire::Endpoint& from, const wire::IpOptions& ip) const {
    CHECK(wire::check_icrc({bytes, from, here_, {}}).good);
    const wire::Decoded decoded = wire::decode(bytes);
    REQUIRE(decoded);
    const auto payload = decoded.packet.payload;
    return {from, ip, decoded.packet.headers, {payload.begin(), payload.end()}};
  }

  const int family_;
  wire::Endpoint here_;
  const int fd_ = socket(family_, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

}  // namespace nicless::test
