// SPDX-License-Identifier: MIT
// What a device shows of the machine, made from values: which interfaces it has, its GID table, its MTU, its GUID. No
// system calls. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "provider/interfaces.h"
#include "queue/result.h"
#include "wire/packet/endpoint.h"

namespace nicless::provider {

inline constexpr unsigned kGidTableLength = 64;  // entries of a port's table; those beyond the last address are empty
inline constexpr unsigned kValidGidsMin = 4;     // programs hard-code the indexes 0, 1 and 3

struct GidEntry {
  wire::Gid gid;
  std::uint32_t interface_index = 0;
  friend bool operator==(const GidEntry&, const GidEntry&) = default;
};

// The addresses of the interfaces as GIDs: routable IPv4, then routable IPv6, then loopback, then link-local; within a
// kind those of interfaces with a carrier first. So index 0 is what a peer on another host can reach, if anything is.
// Where there are fewer than kValidGidsMin, the first is repeated; no address at all makes an empty table.
std::vector<GidEntry> make_gid_table(std::span<const Interface> interfaces);

// The largest RoCE MTU whose packets fit the interface, in bytes: 256 to 4096, as Soft-RoCE derives it (1500 -> 1024,
// 65536 -> 4096).
unsigned roce_mtu_bytes(unsigned interface_mtu_bytes);

// The MTU of a device: the smallest of its interfaces that have an address others can route to; without such, of all.
unsigned device_mtu_bytes(std::span<const Interface> interfaces);

// A node GUID that stays the same for this machine and device name and differs between machines, containers with their
// own interfaces and device names: an EUI-64 with the local bit.
std::uint64_t device_guid(std::string_view machine_id, std::span<const Interface> interfaces, std::string_view name);

// NICLESS_DEVICES: "a=eth0,b=lo" names devices and gives each its interfaces ("a=eth0+eth1" for several). An address
// ("a=10.0.0.1") is the interface that has it, with no other address.
struct DeviceSpec {
  std::string name;
  std::vector<std::string> interfaces;  // names or addresses; empty: all
  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};
queue::Result<std::vector<DeviceSpec>> parse_device_specs(std::string_view text);

// An IPv4 or IPv6 address as text, and so no name.
bool is_address(const std::string& text);
// The interface of that name, or with that address alone; any of 127.0.0.0/8 is an address of the loopback interface.
std::optional<Interface> find_interface(std::span<const Interface> interfaces, const std::string& name_or_address);

}  // namespace nicless::provider
