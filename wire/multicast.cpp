// SPDX-License-Identifier: MIT
#include "wire/multicast.h"

#include <algorithm>
#include <array>
#include <span>

#include "queue/check.h"
#include "wire/packet/raw_gid.h"

namespace nicless::wire {
namespace {

constexpr std::size_t kIpv4At = 12;  // in a GID
constexpr std::byte kMulticastPrefix{0xff};
constexpr std::byte kScopeMask{0x0f};
constexpr std::byte kInterfaceScope{0x01};
constexpr std::byte kLinkScope{0x02};
constexpr std::byte kAdministrativeScope{239};  // RFC 2365

bool is_ipv4_multicast(std::byte first) {
  return (first & std::byte{0xf0}) == std::byte{0xe0};
}

// ffXX::ffff:a.b.c.d
bool embeds_ipv4(const Gid& gid) {
  const bool is_zero =
      std::all_of(gid.bytes.begin() + 2, gid.bytes.begin() + 10, [](std::byte b) { return b == std::byte{0}; });
  return gid.bytes[0] == kMulticastPrefix && is_zero && gid.bytes[10] == std::byte{0xff} &&
         gid.bytes[11] == std::byte{0xff} && is_ipv4_multicast(gid.bytes[kIpv4At]);
}

// FNV-1a.
std::uint32_t hash(const Gid& gid) {
  std::uint32_t value = 2166136261;
  for (const std::byte b : gid.bytes) value = (value ^ std::to_integer<std::uint32_t>(b)) * 16777619;
  return value;
}

}  // namespace

bool is_multicast(const Gid& gid) {
  return gid.is_ipv4() ? is_ipv4_multicast(gid.bytes[kIpv4At]) : gid.bytes[0] == kMulticastPrefix;
}

Gid ipv4_group(const Gid& gid) {
  if (gid.is_ipv4()) return gid;
  if (embeds_ipv4(gid)) return from_ipv4(std::span(gid.bytes).last<4>());
  const std::uint32_t bits = hash(gid);
  const std::array<std::byte, 4> address{kAdministrativeScope, static_cast<std::byte>(bits >> 16 & 0xff),
                                         static_cast<std::byte>(bits >> 8 & 0xff), static_cast<std::byte>(bits & 0xff)};
  return from_ipv4(address);
}

std::optional<Gid> ipv6_group(const Gid& gid) {
  if (gid.is_ipv4() || embeds_ipv4(gid)) return std::nullopt;
  Gid group = gid;
  if ((group.bytes[1] & kScopeMask) <= kInterfaceScope) group.bytes[1] = (group.bytes[1] & ~kScopeMask) | kLinkScope;
  return group;
}

void MulticastTable::attach(const Gid& group, const MulticastMember& member) {
  std::vector<Entry>& entries = groups_[group];
  const auto known =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.member.qpn == member.qpn; });
  if (known == entries.end()) {
    entries.push_back({member, 1});
  } else {
    ++known->times;
  }
}

void MulticastTable::detach(const Gid& group, queue::Qpn qpn) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  std::vector<Entry>& entries = found->second;
  const auto known = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.member.qpn == qpn; });
  if (known != entries.end() && --known->times == 0) entries.erase(known);
  if (entries.empty()) groups_.erase(found);
}

bool MulticastTable::is_own(const MulticastMember& member, queue::Qpn source, const Gid& from) {
  return member.qpn == source &&
         std::find(member.own_addresses.begin(), member.own_addresses.end(), from) != member.own_addresses.end();
}

}  // namespace nicless::wire
