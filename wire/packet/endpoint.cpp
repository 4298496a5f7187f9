// SPDX-License-Identifier: MIT
#include "wire/packet/endpoint.h"

#include <algorithm>

#include "wire/packet/text.h"

namespace nicless::wire {
namespace {

constexpr int kGroups = 8;
using Groups = std::array<unsigned, kGroups>;

struct Run {
  int begin = kGroups;
  int length = 0;
};

// The first longest run of zero groups, which is written as "::" if it is longer than one. RFC 5952 4.2.
Run longest_zeros(const Groups& groups) {
  Run best, current;
  for (int i = 0; i < kGroups; ++i) {
    current = groups[i] != 0 ? Run{} : current.length == 0 ? Run{i, 1} : Run{current.begin, current.length + 1};
    if (current.length > best.length) best = current;
  }
  return best.length > 1 ? best : Run{};
}

std::string ipv6_text(const Gid& gid) {
  Groups groups{};
  for (int i = 0; i < kGroups; ++i) {
    groups[i] = std::to_integer<unsigned>(gid.bytes[2 * i]) << 8 | std::to_integer<unsigned>(gid.bytes[2 * i + 1]);
  }
  const Run zeros = longest_zeros(groups);
  std::string text;
  for (int i = 0; i < kGroups; ++i) {
    if (i == zeros.begin) {
      text += "::";
      i += zeros.length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    append(text, "%x", groups[i]);
  }
  return text;
}

}  // namespace

std::string to_string(const Gid& gid) {
  if (!gid.is_ipv4()) return ipv6_text(gid);
  const auto part = [&gid](int i) { return std::to_integer<unsigned>(gid.bytes[i]); };
  std::string text;
  append(text, "%u.%u.%u.%u", part(12), part(13), part(14), part(15));
  return text;
}

std::string to_string(const Endpoint& endpoint) {
  const std::string address = to_string(endpoint.address);
  const std::string port = std::to_string(endpoint.port);
  return endpoint.address.is_ipv4() ? address + ":" + port : "[" + address + "]:" + port;
}

}  // namespace nicless::wire
