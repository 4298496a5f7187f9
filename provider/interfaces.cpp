// SPDX-License-Identifier: MIT
#include "provider/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "wire/io/raw_syscalls.h"
#include "wire/io/socket_address.h"

namespace nicless::provider {
namespace {

// Raw system calls: libraries that emulate sockets (librspreload) interpose libc's functions for the whole process.
class Socket {
 public:
  Socket() : fd_(wire::raw::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) wire::raw::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  unsigned mtu_bytes(const std::string& name) const {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return wire::raw::call(SYS_ioctl, fd_, SIOCGIFMTU, &request) == 0 ? static_cast<unsigned>(request.ifr_mtu) : 0;
  }

 private:
  int fd_;
};

std::optional<wire::Gid> gid_of(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    return wire::gid_of(in.sin_addr);
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, address, sizeof in);
    return wire::gid_of(in.sin6_addr);
  }
  return std::nullopt;
}

Interface& find_or_add(std::vector<Interface>& interfaces, const ifaddrs& entry, const Socket& socket) {
  const auto found =
      std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& i) { return i.name == entry.ifa_name; });
  if (found != interfaces.end()) return *found;
  Interface& added = interfaces.emplace_back();
  added.name = entry.ifa_name;
  added.mtu_bytes = socket.mtu_bytes(added.name);
  added.index = if_nametoindex(entry.ifa_name);
  added.running = (entry.ifa_flags & IFF_RUNNING) != 0;
  return added;
}

void add(Interface& interface, const sockaddr* address) {
  if (address->sa_family == AF_PACKET) {
    sockaddr_ll link{};
    std::memcpy(&link, address, sizeof link);
    if (link.sll_halen == interface.mac.size()) std::memcpy(interface.mac.data(), link.sll_addr, interface.mac.size());
  } else if (const auto gid = gid_of(address)) {
    interface.addresses.push_back(*gid);
  }
}

}  // namespace

std::vector<Interface> read_interfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  const Socket socket;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    Interface& interface = find_or_add(interfaces, *entry, socket);
    if (entry->ifa_addr != nullptr) add(interface, entry->ifa_addr);
  }
  std::stable_sort(interfaces.begin(), interfaces.end(),
                   [](const Interface& a, const Interface& b) { return a.index < b.index; });
  return interfaces;
}

}  // namespace nicless::provider
