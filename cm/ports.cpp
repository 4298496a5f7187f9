// SPDX-License-Identifier: MIT
#include "cm/ports.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "cm/address.h"
#include "cm/cm_id.h"
#include "provider/private.h"

namespace nicless::cm {
namespace {

template <typename A, typename B>
bool overlap(const A& a, const B& b) {
  if (a.is_wildcard || b.is_wildcard) return (a.takes_ipv4 && b.takes_ipv4) || (a.takes_ipv6 && b.takes_ipv6);
  return a.address == b.address;
}

// Whatever reaches `inner` reaches `outer`.
bool covers(const PortSocket& outer, const Binding& inner) {
  if (!outer.is_wildcard) return !inner.is_wildcard && outer.address == inner.address;
  return (outer.takes_ipv4 || !inner.takes_ipv4) && (outer.takes_ipv6 || !inner.takes_ipv6);
}

Binding describe(const BindRequest& request) {
  Binding b;
  b.space = request.space;
  b.may_share = request.may_share;
  b.is_wildcard = is_any(*request.address);
  b.address = to_gid(*request.address);
  const bool is_v6 = request.address->sa_family == AF_INET6;
  b.takes_ipv6 = is_v6 && (b.is_wildcard || !b.address.is_ipv4());
  b.takes_ipv4 = !b.takes_ipv6 || (b.is_wildcard && !request.v6_only);
  return b;
}

}  // namespace

bool Binding::takes(const wire::Gid& destination) const {
  if (!is_wildcard) return address == destination;
  return destination.is_ipv4() ? takes_ipv4 : takes_ipv6;
}

Result<Binding> Ports::bind(const BindRequest& request, CmId& owner) {
  Binding binding = describe(request);
  const std::uint16_t port = port_of(*request.address);
  if (const auto others = bound_.find(port); others != bound_.end()) {
    for (const Bound& other : others->second) {
      if (other.binding.space != binding.space || !overlap(other.binding, binding)) continue;
      if (!other.binding.may_share || !binding.may_share)
        return queue::error(EADDRINUSE, "port " + std::to_string(port) + " is taken by another id of this process");
    }
  }
  const auto socket = socket_for(request, binding);
  if (!socket) return socket.error();
  binding.socket = *socket;
  bound_[binding.port()].push_back({binding, &owner});
  return binding;
}

Result<Ports::Socket> Ports::socket_for(const BindRequest& request, const Binding& wanted) {
  std::erase_if(sockets_, [](const auto& socket) { return socket.expired(); });
  if (const std::uint16_t port = port_of(*request.address); port != 0) {
    for (const auto& each : sockets_)
      if (Socket socket = each.lock(); socket->port == port && covers(*socket, wanted)) return socket;
  }
  return open(request, wanted);
}

Result<Ports::Socket> Ports::open(const BindRequest& request, const Binding& wanted) {
  PortSocket socket{.is_wildcard = wanted.is_wildcard,
                    .takes_ipv6 = wanted.takes_ipv6,
                    .takes_ipv4 = wanted.takes_ipv4,
                    .address = wanted.address};
  const int flags = request.v6_only ? NICLESS_GSI_V6ONLY : 0;
  if (int e = nicless_gsi_open(request.address, flags, &socket.gsi, &socket.port)) {
    if (e == EADDRINUSE) give_up_unbound(port_of(*request.address), wanted);
    const std::string where = to_string(*request.address);
    if (e == EADDRINUSE && nicless_services_are_sockets() == 0)
      return queue::error(e, "the RoCE v2 port, UDP 4791, is another process's");
    if (e == EADDRINUSE)
      return queue::error(e, where +
                                 ": the UDP port is taken (ss -lup shows by whom); programs share the numbers of all "
                                 "RDMA port spaces and of UDP");
    if (e == EADDRNOTAVAIL) return queue::error(e, where + ": this machine has no such address");
    if (e == EACCES) return queue::error(e, where + ": ports below net.ipv4.ip_unprivileged_port_start need root");
    return queue::error(e, where + ": the UDP socket behind the port cannot be opened");
  }
  Socket opened(new PortSocket(socket), [this](const PortSocket* dying) {
    if (dying->gsi != nullptr) unused_.push_back(dying->gsi);
    delete dying;
  });
  sockets_.push_back(opened);
  return opened;
}

bool Ports::is_bound(const PortSocket& socket) const {
  const auto place = bound_.find(socket.port);
  return place != bound_.end() && std::any_of(place->second.begin(), place->second.end(), [&](const Bound& bound) {
           return bound.binding.socket.get() == &socket;
         });
}

void Ports::give_up_unbound(std::uint16_t port, const Binding& wanted) {
  for (const auto& each : sockets_) {
    const Socket socket = each.lock();
    if (socket->port != port || !overlap(*socket, wanted) || is_bound(*socket)) continue;
    if (socket->gsi != nullptr) unused_.push_back(std::exchange(socket->gsi, nullptr));
    socket->port = 0;  // nobody's any more
  }
}

Result<void> Ports::check_listening(const Binding& binding, const CmId& owner) const {
  for (const Bound& other : bound_.at(binding.port())) {
    if (other.owner == &owner || other.owner->stage != CmId::Stage::Listening) continue;
    if (other.binding.space == binding.space && overlap(other.binding, binding))
      return queue::error(EADDRINUSE,
                          "another id of this process listens on port " + std::to_string(binding.port()) + " already");
  }
  return {};
}

void Ports::share(const Binding& binding, const CmId& owner) {
  for (Bound& bound : bound_.at(binding.port()))
    if (bound.owner == &owner) bound.binding.may_share = true;
}

Result<void> Ports::set_v6_only(Binding& binding, const CmId& owner, bool is_v6_only) {
  if (!binding.is_wildcard || !binding.takes_ipv6) return {};
  if (!is_v6_only && !binding.socket->takes_ipv4)
    return queue::error(EINVAL, "the id was bound for IPv6 alone, and IPv4 cannot be added afterwards");
  binding.takes_ipv4 = !is_v6_only;
  for (Bound& bound : bound_.at(binding.port()))
    if (bound.owner == &owner) bound.binding.takes_ipv4 = binding.takes_ipv4;
  return {};
}

std::uint16_t Ports::unused_port(queue::Rng& rng) const {
  constexpr std::uint32_t kFirst = 32768;  // net.ipv4.ip_local_port_range, as Linux sets it
  constexpr std::uint32_t kCount = 28232;
  std::uint16_t port = 0;
  do {
    port = static_cast<std::uint16_t>(kFirst + rng.below(kCount));
  } while (bound_.contains(port) && bound_.size() < kCount);
  return port;
}

void Ports::release(const Binding& binding, const CmId& owner) {
  const auto place = bound_.find(binding.port());
  if (place != bound_.end()) {
    std::erase_if(place->second, [&](const Bound& bound) { return bound.owner == &owner; });
    if (place->second.empty()) bound_.erase(place);
  }
}

std::vector<nicless_gsi*> Ports::take_unused() {
  return std::exchange(unused_, {});
}

CmId* Ports::find_listener(rdma_port_space space, std::uint16_t port, const wire::Gid& destination) const {
  const auto place = bound_.find(port);
  if (place == bound_.end()) return nullptr;
  CmId* found = nullptr;
  for (const Bound& bound : place->second) {
    if (bound.owner->stage != CmId::Stage::Listening || bound.binding.space != space) continue;
    if (!bound.binding.takes(destination)) continue;
    if (!bound.binding.is_wildcard) return bound.owner;
    if (found == nullptr) found = bound.owner;
  }
  return found;
}

}  // namespace nicless::cm
