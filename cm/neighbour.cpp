// SPDX-License-Identifier: MIT
#include "cm/neighbour.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "cm/address.h"

namespace nicless::cm {
namespace {

constexpr std::size_t kAligned = 4;  // of messages and attributes

// The bytes of an address as netlink has them: 4 or 16.
std::span<const std::byte> address_of(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, 1));
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, 1));
}

unsigned scope_of(const sockaddr& address) {
  return address.sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_scope_id : 0;
}

// One message: a header, the fixed part of its type, attributes.
class Message {
 public:
  template <typename Fixed>
  Message(std::uint16_t type, const Fixed& fixed) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = NLM_F_REQUEST;
    append(std::as_bytes(std::span(&fixed, 1)));
  }
  void add(std::uint16_t type, std::span<const std::byte> value) {
    const rtattr head{static_cast<std::uint16_t>(sizeof(rtattr) + value.size()), type};
    append(std::as_bytes(std::span(&head, 1)));
    append(value);
  }
  std::span<const std::byte> bytes() {
    header_.nlmsg_len = static_cast<std::uint32_t>(size_);
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return std::span(bytes_).first(size_);
  }

 private:
  void append(std::span<const std::byte> value) {  // all there is to say fits
    std::memcpy(bytes_.data() + size_, value.data(), value.size());
    size_ += (value.size() + kAligned - 1) / kAligned * kAligned;
  }

  nlmsghdr header_{};
  std::array<std::byte, 256> bytes_{};
  std::size_t size_ = sizeof(nlmsghdr);
};

// An answer of the type asked for: its fixed part, and the attribute of a kind.
template <typename Fixed>
class Answer {
 public:
  static std::optional<Answer> read(std::span<const std::byte> bytes, std::uint16_t type) {
    nlmsghdr header{};
    if (bytes.size() < sizeof header + sizeof(Fixed)) return std::nullopt;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_type != type || header.nlmsg_len > bytes.size()) return std::nullopt;
    Answer answer;
    std::memcpy(&answer.fixed, bytes.data() + sizeof header, sizeof(Fixed));
    answer.attributes_ = bytes.first(header.nlmsg_len).subspan(sizeof header + sizeof(Fixed));
    return answer;
  }
  std::span<const std::byte> attribute(std::uint16_t type) const {
    for (auto rest = attributes_; rest.size() >= sizeof(rtattr);) {
      rtattr head{};
      std::memcpy(&head, rest.data(), sizeof head);
      if (head.rta_len < sizeof head || head.rta_len > rest.size()) break;
      if (head.rta_type == type) return rest.first(head.rta_len).subspan(sizeof head);
      const std::size_t step = (std::size_t{head.rta_len} + kAligned - 1) / kAligned * kAligned;
      if (step > rest.size()) break;
      rest = rest.subspan(step);
    }
    return {};
  }

  Fixed fixed{};

 private:
  std::span<const std::byte> attributes_;
};

class Netlink {
 public:
  Netlink() : fd_(static_cast<int>(::syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE))) {}
  ~Netlink() {
    if (fd_ >= 0) ::syscall(SYS_close, fd_);
  }
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  // The kernel has answered by the time that it has taken the question. Good until the next one.
  std::span<const std::byte> ask(Message message) {
    const auto bytes = message.bytes();
    if (fd_ < 0 || ::syscall(SYS_sendto, fd_, bytes.data(), bytes.size(), 0, nullptr, 0) < 0) return {};
    const long got = ::syscall(SYS_recvfrom, fd_, room_.data(), room_.size(), MSG_DONTWAIT, nullptr, nullptr);
    return got < 0 ? std::span<const std::byte>() : std::span(room_).first(static_cast<std::size_t>(got));
  }

 private:
  const int fd_;
  std::array<std::byte, 4096> room_{};
};

}  // namespace

bool is_known_neighbour(const sockaddr& source, const sockaddr& destination) {
  constexpr unsigned kValid = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;
  const auto target = address_of(destination);
  const auto bits = static_cast<unsigned char>(8 * target.size());
  Netlink netlink;
  rtmsg to{};
  to.rtm_family = static_cast<unsigned char>(destination.sa_family);
  to.rtm_dst_len = to.rtm_src_len = bits;
  Message way(RTM_GETROUTE, to);
  way.add(RTA_DST, target);
  way.add(RTA_SRC, address_of(source));
  if (const unsigned scope = scope_of(destination); scope != 0) way.add(RTA_OIF, std::as_bytes(std::span(&scope, 1)));
  const auto route = Answer<rtmsg>::read(netlink.ask(way), RTM_NEWROUTE);
  if (!route) return false;
  const auto interface = route->attribute(RTA_OIF);
  ndmsg who{};
  if (interface.size() != sizeof who.ndm_ifindex) return false;
  who.ndm_family = to.rtm_family;
  std::memcpy(&who.ndm_ifindex, interface.data(), interface.size());
  const auto router = route->attribute(RTA_GATEWAY);
  Message neighbour(RTM_GETNEIGH, who);
  neighbour.add(NDA_DST, router.empty() ? target : router);
  const auto found = Answer<ndmsg>::read(netlink.ask(neighbour), RTM_NEWNEIGH);
  return found && (found->fixed.ndm_state & kValid) != 0;
}

}  // namespace nicless::cm
