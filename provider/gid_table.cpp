// SPDX-License-Identifier: MIT
#include "provider/gid_table.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "wire/io/socket_address.h"

namespace nicless::provider {
namespace {

constexpr unsigned kHeaderBytesMax = 80;  // what Soft-RoCE sets aside for its headers below the interface's MTU

unsigned byte_at(const wire::Gid& gid, std::size_t index) {
  return std::to_integer<unsigned>(gid.bytes[index]);
}

bool all_zero(const wire::Gid& gid, std::size_t count) {
  return std::all_of(gid.bytes.begin(), gid.bytes.begin() + static_cast<std::ptrdiff_t>(count),
                     [](std::byte b) { return b == std::byte{0}; });
}

// In the order of the table.
enum class Kind { RoutableIpv4, RoutableIpv6, Loopback, LinkLocal };

Kind kind_of(const wire::Gid& gid) {
  if (gid.is_ipv4()) {
    if (byte_at(gid, 12) == 127) return Kind::Loopback;
    return byte_at(gid, 12) == 169 && byte_at(gid, 13) == 254 ? Kind::LinkLocal : Kind::RoutableIpv4;
  }
  if (all_zero(gid, 15) && byte_at(gid, 15) == 1) return Kind::Loopback;
  return byte_at(gid, 0) == 0xfe && (byte_at(gid, 1) & 0xc0) == 0x80 ? Kind::LinkLocal : Kind::RoutableIpv6;
}

bool is_routable(const wire::Gid& gid) {
  return kind_of(gid) <= Kind::RoutableIpv6;
}

std::optional<wire::Gid> parse_address(const std::string& text) {
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return wire::gid_of(ipv4);
  in6_addr ipv6;
  if (inet_pton(AF_INET6, text.c_str(), &ipv6) == 1) return wire::gid_of(ipv6);
  return std::nullopt;
}

bool is_ipv4_loopback(const wire::Gid& gid) {
  return kind_of(gid) == Kind::Loopback && gid.is_ipv4();
}

bool has_address(const Interface& interface, const wire::Gid& gid) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(), [&](const wire::Gid& own) {
    return own == gid || (is_ipv4_loopback(own) && is_ipv4_loopback(gid));
  });
}

struct Candidate {
  Kind kind;
  bool running;
  GidEntry entry;
};

// What is wrong with a name; null: nothing.
const char* fault_of_name(std::string_view text) {
  if (text.empty()) return "is empty";
  if (text.size() >= IBV_SYSFS_NAME_MAX) return "has more than 63 characters";
  if (text.front() == '.') return "begins with a dot";
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == ':';
  });
  return is_plain ? nullptr : "has other characters than letters, digits and -_.:";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

queue::Result<DeviceSpec> parse_device_spec(std::string_view text) {
  const auto refuse = [&](const std::string& what) {
    return queue::error(EINVAL, "NICLESS_DEVICES: \"" + std::string(text) + "\" " + what +
                                    "; it is written like a=eth0,b=lo or a=eth0+eth1");
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return refuse("names no interface");
  DeviceSpec spec{std::string(text.substr(0, equals)), {}};
  if (const char* fault = fault_of_name(spec.name)) return refuse(std::string("names a device, and the name ") + fault);
  for (const std::string_view interface : split(text.substr(equals + 1), '+')) {
    if (const char* fault = fault_of_name(interface))
      return refuse(std::string("names an interface, and the name ") + fault);
    spec.interfaces.emplace_back(interface);
  }
  return spec;
}

}  // namespace

std::vector<GidEntry> make_gid_table(std::span<const Interface> interfaces) {
  std::vector<Candidate> candidates;
  for (const Interface& interface : interfaces) {
    for (const wire::Gid& gid : interface.addresses) {
      candidates.push_back({kind_of(gid), interface.running, {gid, interface.index}});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.running > b.running;
  });
  std::vector<GidEntry> table;
  for (const Candidate& candidate : candidates) {
    if (table.size() == kGidTableLength) break;
    table.push_back(candidate.entry);
  }
  while (!table.empty() && table.size() < kValidGidsMin) table.push_back(GidEntry(table.front()));
  return table;
}

unsigned roce_mtu_bytes(unsigned interface_mtu_bytes) {
  const unsigned room = interface_mtu_bytes > kHeaderBytesMax ? interface_mtu_bytes - kHeaderBytesMax : 0;
  unsigned mtu = 4096;
  while (mtu > 256 && mtu > room) mtu /= 2;
  return mtu;
}

unsigned device_mtu_bytes(std::span<const Interface> interfaces) {
  unsigned routable = 0;
  unsigned any = 0;
  const auto lower = [](unsigned& least, unsigned mtu) { least = least == 0 ? mtu : std::min(least, mtu); };
  for (const Interface& interface : interfaces) {
    if (interface.addresses.empty()) continue;
    lower(any, interface.mtu_bytes);
    if (std::any_of(interface.addresses.begin(), interface.addresses.end(), is_routable)) {
      lower(routable, interface.mtu_bytes);
    }
  }
  return roce_mtu_bytes(routable != 0 ? routable : any);
}

std::uint64_t device_guid(std::string_view machine_id, std::span<const Interface> interfaces, std::string_view name) {
  // FNV-1a: any mixing will do, for nothing depends on the GUID but its being the same again and not another's.
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](unsigned byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const char c : machine_id) mix(static_cast<unsigned char>(c));
  const auto has_mac = [](const Interface& i) { return i.mac != std::array<std::uint8_t, 6>{}; };
  const auto first = std::find_if(interfaces.begin(), interfaces.end(), has_mac);
  if (first != interfaces.end()) {
    for (const std::uint8_t byte : first->mac) mix(byte);
  }
  for (const char c : name) mix(static_cast<unsigned char>(c));
  // EUI-64 made from 48 bits (ff:fe in the middle), individual, locally administered: IBTA 4.1.1.
  const std::uint64_t high = (hash >> 40 & 0xfcffff) | 0x020000;
  return high << 40 | std::uint64_t{0xfffe} << 24 | (hash & 0xffffff);
}

queue::Result<std::vector<DeviceSpec>> parse_device_specs(std::string_view text) {
  std::vector<DeviceSpec> specs;
  for (const std::string_view part : split(text, ',')) {
    auto spec = parse_device_spec(part);
    if (!spec) return spec.error();
    const auto same = [&](const DeviceSpec& other) { return other.name == spec->name; };
    if (std::any_of(specs.begin(), specs.end(), same)) {
      return queue::error(EINVAL, "NICLESS_DEVICES: names the device \"" + spec->name + "\" twice");
    }
    specs.push_back(std::move(*spec));
  }
  return specs;
}

bool is_address(const std::string& text) {
  return parse_address(text).has_value();
}

std::optional<Interface> find_interface(std::span<const Interface> interfaces, const std::string& name_or_address) {
  const auto address = parse_address(name_or_address);
  for (const Interface& interface : interfaces) {
    if (interface.name == name_or_address) return interface;
    if (!address || !has_address(interface, *address)) continue;
    Interface narrowed = interface;
    narrowed.addresses = {*address};
    return narrowed;
  }
  return std::nullopt;
}

}  // namespace nicless::provider
