// SPDX-License-Identifier: MIT
#include "wire/packet/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>

namespace nicless::wire {

bool Gid::is_ipv4() const {
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  return std::all_of(bytes.begin(), bytes.begin() + 10, is_zero) && bytes[10] == std::byte{0xff} &&
         bytes[11] == std::byte{0xff};
}

std::string to_string(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (gid.is_ipv4()) {
    inet_ntop(AF_INET, gid.bytes.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof text);
  }
  return text;
}

std::string to_string(const Endpoint& endpoint) {
  const std::string address = to_string(endpoint.address);
  const std::string port = std::to_string(endpoint.port);
  return endpoint.address.is_ipv4() ? address + ":" + port : "[" + address + "]:" + port;
}

}  // namespace nicless::wire
