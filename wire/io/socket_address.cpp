// SPDX-License-Identifier: MIT
#include "wire/io/socket_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <span>

#include "queue/mutex.h"
#include "wire/packet/raw_gid.h"

namespace nicless::wire {

namespace {

constexpr std::size_t kMappedPrefixBytes = Gid::kMappedPrefix.size();

// Addresses of this host and their interfaces. They change rarely, so what was found stays.
class InterfaceTable {
 public:
  unsigned find(const Gid& gid) EXCLUDES(mutex_) {
    queue::MutexLock lock(mutex_);
    if (const auto known = interfaces_.find(gid); known != interfaces_.end()) return known->second;
    read();
    const auto found = interfaces_.find(gid);
    return found == interfaces_.end() ? 0 : found->second;
  }

 private:
  void read() REQUIRES(mutex_) {
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return;
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr) continue;
      const auto family = entry->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      SocketAddress address{};
      std::memcpy(&address, entry->ifa_addr, family == AF_INET ? sizeof address.v4 : sizeof address.v6);
      interfaces_[endpoint_of(address).address] = if_nametoindex(entry->ifa_name);
    }
    freeifaddrs(list);
  }

  queue::Mutex mutex_;
  std::map<Gid, unsigned> interfaces_ GUARDED_BY(mutex_);
};

// For the life of the process: ports outlive static objects.
std::atomic<InterfaceTable*> known_table{nullptr};

InterfaceTable& interface_table() {
  if (InterfaceTable* made = known_table.load()) return *made;
  auto made = std::make_unique<InterfaceTable>();
  InterfaceTable* first = nullptr;
  if (known_table.compare_exchange_strong(first, made.get())) return *made.release();
  return *first;  // another thread was faster
}

}  // namespace

Gid gid_of(const in_addr& address) {
  return from_ipv4(std::as_bytes(std::span<const in_addr, 1>(&address, 1)));
}

Gid gid_of(const in6_addr& address) {
  return from_bytes(std::as_bytes(std::span<const in6_addr, 1>(&address, 1)));
}

in_addr ipv4_of(const Gid& gid) {
  in_addr address;
  std::memcpy(&address, gid.bytes.data() + kMappedPrefixBytes, sizeof address);
  return address;
}

in6_addr ipv6_of(const Gid& gid) {
  in6_addr address;
  std::memcpy(&address, gid.bytes.data(), sizeof address);
  return address;
}

Endpoint endpoint_of(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET) return {gid_of(address.v4.sin_addr), ntohs(address.v4.sin_port)};
  return {gid_of(address.v6.sin6_addr), ntohs(address.v6.sin6_port)};
}

socklen_t to_socket_address(const Endpoint& endpoint, int family, unsigned interface, SocketAddress& out) {
  if (family == AF_INET) {
    out.v4 = {};
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(endpoint.port);
    out.v4.sin_addr = ipv4_of(endpoint.address);
    return sizeof out.v4;
  }
  out.v6 = {};
  out.v6.sin6_family = AF_INET6;
  out.v6.sin6_port = htons(endpoint.port);
  out.v6.sin6_addr = ipv6_of(endpoint.address);
  out.v6.sin6_scope_id = interface;
  return sizeof out.v6;
}

bool is_link_local(const Gid& gid) {
  return gid.bytes[0] == std::byte{0xfe} && (gid.bytes[1] & std::byte{0xc0}) == std::byte{0x80};
}

bool is_unspecified(const Gid& gid) {
  const auto tail = gid.is_ipv4() ? gid.bytes.begin() + kMappedPrefixBytes : gid.bytes.begin();
  return std::all_of(tail, gid.bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

unsigned interface_of(const Gid& local) {
  return interface_table().find(local);
}

void forget_interfaces() {
  known_table.store(nullptr);
}

}  // namespace nicless::wire
