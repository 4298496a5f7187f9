// SPDX-License-Identifier: MIT
#include "provider/rocev2.h"

#include <cerrno>
#include <string>

#include "provider/device.h"
#include "provider/runtime.h"
#include "provider/switch.h"

namespace nicless::provider {

bool is_rocev2() {
  static const bool asked = is_switched_on("NICLESS_ROCEV2", "asks for strict RoCE v2");
  return asked;
}

wire::Addressing addressing() {
  if (!is_rocev2()) return wire::Addressing::port_in_qpn();
  constexpr std::uint32_t kFirst = wire::Addressing::kStrictQpnFirst;
  constexpr std::uint32_t kCount = wire::Addressing::kStrictQpnFirstMax - kFirst + 1;
  return wire::Addressing::strict(kFirst + static_cast<std::uint32_t>(random_u64() % kCount));
}

wire::SocketConfig rocev2_address() {
  wire::SocketConfig config = wire::any_address();
  const auto only = only_address();
  int family = config.address.any.sa_family;
  if (only) family = only->is_ipv4() ? AF_INET : AF_INET6;
  const unsigned interface = only && wire::is_link_local(*only) ? wire::interface_of(*only) : 0;
  wire::to_socket_address({only.value_or(wire::Gid{}), wire::kRoceUdpPort}, family, interface, config.address);
  return config;
}

queue::Error explain_taken_address(const queue::Error& error) {
  if (error.errno_value != EADDRINUSE) return error;
  const auto only = only_address();
  const std::string taken = only ? wire::to_string(*only) : std::string("this machine's addresses");
  const std::string example = taken == "127.0.0.2" ? "127.0.0.3" : "127.0.0.2";
  return queue::error(EADDRINUSE,
                      "UDP port 4791 of " + taken +
                          " is taken (ss -lup shows by whom): in strict RoCE v2 mode an address serves one process, "
                          "and a process that has not exactly one holds them all; give each another one "
                          "(NICLESS_DEVICES=nicless0=" +
                          example + ") or leave strict mode");
}

}  // namespace nicless::provider
