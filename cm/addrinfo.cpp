// SPDX-License-Identifier: MIT
#include "cm/addrinfo.h"

#include <netdb.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "cm/address.h"
#include "cm/agent.h"
#include "cm/errno_shape.h"
#include "cm/event_channel.h"
#include "cm/rdma65.h"

namespace nicless::cm {
namespace {

// Programs and libraries free what they get with rdma_freeaddrinfo only, but C's allocator costs nothing here.
sockaddr* copy(const sockaddr* address, socklen_t bytes) {
  auto* made = static_cast<sockaddr*>(std::malloc(bytes));
  if (made != nullptr) std::memcpy(made, address, bytes);
  return made;
}

char* copy(const char* text) {
  return text == nullptr ? nullptr : ::strdup(text);
}

std::optional<int> socket_type(int qp_type) {
  switch (qp_type) {
    case 0:  // any
      return 0;
    case IBV_QPT_UD:
      return SOCK_DGRAM;
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      return SOCK_STREAM;
    default:
      return std::nullopt;
  }
}

int protocol(int port_space, int type) {
  if (port_space == RDMA_PS_TCP) return IPPROTO_TCP;
  if (port_space == RDMA_PS_UDP || port_space == RDMA_PS_IPOIB) return IPPROTO_UDP;
  if (port_space == RDMA_PS_IB && type != 0) return type == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP;
  return 0;
}

addrinfo to_socket_hints(const rdma_addrinfo& hints, int type) {
  addrinfo wanted{};
  if (hints.ai_flags & RAI_PASSIVE) wanted.ai_flags |= AI_PASSIVE;
  if (hints.ai_flags & RAI_NUMERICHOST) wanted.ai_flags |= AI_NUMERICHOST;
  if (hints.ai_family != AF_IB) wanted.ai_family = hints.ai_family;  // else the GID is written as an IP address
  wanted.ai_socktype = type;
  wanted.ai_protocol = protocol(hints.ai_port_space, wanted.ai_socktype);
  return wanted;
}

bool wants_gid(const rdma_addrinfo& hints) {
  constexpr int kNeeded = RAI_FAMILY | RAI_NUMERICHOST;
  return hints.ai_family == AF_IB && (hints.ai_flags & kNeeded) == kNeeded;
}

sockaddr_storage in_family(const addrinfo& found, const rdma_addrinfo& hints, int port_space) {
  if (!wants_gid(hints)) return copy_address(*found.ai_addr);
  const wire::Gid gid = is_any(*found.ai_addr) ? wire::Gid{} : to_gid(*found.ai_addr);
  const sockaddr_ib named = to_ib_address(gid, static_cast<std::uint16_t>(port_space), port_of(*found.ai_addr));
  sockaddr_storage address{};
  std::memcpy(&address, &named, sizeof named);
  return address;
}

// The first address that was found, in the hints' terms where they say something.
int fill_found(rdma_addrinfo& info, const rdma_addrinfo& hints, const addrinfo& found) {
  const bool is_datagram = found.ai_socktype == SOCK_DGRAM;
  info.ai_flags = hints.ai_flags & RAI_PASSIVE;
  info.ai_qp_type = hints.ai_qp_type != 0 ? hints.ai_qp_type : is_datagram ? IBV_QPT_UD : IBV_QPT_RC;
  info.ai_port_space = hints.ai_port_space != 0 ? hints.ai_port_space : is_datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
  const bool is_passive = (hints.ai_flags & RAI_PASSIVE) != 0;
  const sockaddr_storage named = in_family(found, hints, info.ai_port_space);
  info.ai_family = named.ss_family;
  sockaddr*& address = is_passive ? info.ai_src_addr : info.ai_dst_addr;
  address = copy(&as_sockaddr(named), address_bytes(named.ss_family));
  if (address == nullptr) return EAI_MEMORY;
  (is_passive ? info.ai_src_len : info.ai_dst_len) = address_bytes(named.ss_family);
  (is_passive ? info.ai_src_canonname : info.ai_dst_canonname) = copy(found.ai_canonname);
  return 0;
}

int look_up(rdma_addrinfo& info, const char* node, const char* service, const rdma_addrinfo* hints) {
  const rdma_addrinfo none{};
  addrinfo wanted{};
  if (hints != nullptr) {
    const auto type = socket_type(hints->ai_qp_type);
    if (!type) return EAI_SOCKTYPE;
    wanted = to_socket_hints(*hints, *type);
  }
  addrinfo* found = nullptr;
  if (int e = ::getaddrinfo(node, service, hints == nullptr ? nullptr : &wanted, &found)) return e;
  const int e = fill_found(info, hints == nullptr ? none : *hints, *found);
  ::freeaddrinfo(found);
  return e;
}

int take_hints(rdma_addrinfo& info, const rdma_addrinfo& hints) {
  info.ai_flags = hints.ai_flags;
  info.ai_family = hints.ai_family;
  info.ai_qp_type = hints.ai_qp_type;
  info.ai_port_space = hints.ai_port_space;
  if (hints.ai_dst_len == 0) return 0;
  info.ai_dst_addr = copy(hints.ai_dst_addr, hints.ai_dst_len);
  info.ai_dst_len = hints.ai_dst_len;
  return info.ai_dst_addr == nullptr ? EAI_MEMORY : 0;
}

int add_source(rdma_addrinfo& info, const rdma_addrinfo* hints) {
  if (hints == nullptr || hints->ai_src_len == 0 || info.ai_src_len != 0) return 0;
  info.ai_src_addr = copy(hints->ai_src_addr, hints->ai_src_len);
  info.ai_src_len = hints->ai_src_len;
  return info.ai_src_addr == nullptr ? EAI_MEMORY : 0;
}

// Of InfiniBand ports, which there are none of: the others are skipped. rdma_getaddrinfo(3).
queue::Error nothing_by_sa(const char* node, const char* service, int flags) {
  if (node != nullptr || (flags & kLookUpByDns) != 0)
    return queue::error(EOPNOTSUPP, "RAI_SA looks up services, not nodes, and goes without RAI_DNS");
  if (service == nullptr) return queue::error(EINVAL, "RAI_SA looks up a service, and none is given");
  return queue::error(ENOENT, "no port has a subnet administrator to ask, as none is InfiniBand's; leave out RAI_SA");
}

int refuse(const queue::Error& error) {
  fail("rdma_getaddrinfo", error);
  return -1;
}

}  // namespace

int look_up_addrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result) {
  if (result == nullptr) return refuse(queue::error(EINVAL, "res is NULL"));
  if (node == nullptr && service == nullptr && hints == nullptr)
    return refuse(queue::error(EINVAL, "neither node nor service nor hints are given"));
  constexpr int kFlags = RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | kLookUpByDns;
  if (hints != nullptr && (hints->ai_flags & kLookUpBySa) != 0)
    return refuse(nothing_by_sa(node, service, hints->ai_flags));
  if (hints != nullptr && (hints->ai_flags & ~kFlags) != 0) return EAI_BADFLAGS;
  auto* info = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (info == nullptr) return EAI_MEMORY;
  int e = node != nullptr || service != nullptr ? look_up(*info, node, service, hints) : take_hints(*info, *hints);
  if (e == 0) e = add_source(*info, hints);
  if (e != 0) {
    free_addrinfo(info);
    return e;
  }
  *result = info;
  return 0;
}

Result<void> resolve_addrinfo(CmId& id, const char* node, const char* service, const rdma_addrinfo* hints) {
  if (hints != nullptr && (hints->ai_flags & kLookUpBySa) != 0)
    return queue::error(EOPNOTSUPP, "RoCE has no subnet administrator to ask; leave out RAI_SA");
  if (node == nullptr && service == nullptr && hints == nullptr)
    return queue::error(EINVAL, "neither node nor service nor hints are given");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    if (id.is_resolving_addrinfo)
      return queue::error(EBUSY, "rdma_query_addrinfo has to fetch the last answer before another is looked up");
    id.is_resolving_addrinfo = true;
  }
  rdma_addrinfo* found = nullptr;
  const int status = look_up_addrinfo(node, service, hints, &found);  // may take its time: without the lock
  {
    Turn turn(**agent);
    id.resolved_addrinfo = found;
    id.is_resolving_addrinfo = status == 0;
    report(new CmEvent(id, status == 0 ? kAddrinfoResolved : kAddrinfoError, status));
  }
  return complete(id);
}

Result<rdma_addrinfo*> query_addrinfo(CmId& id) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  if (id.resolved_addrinfo == nullptr) return queue::error(ENOENT, "rdma_resolve_addrinfo has found nothing");
  id.is_resolving_addrinfo = false;
  return std::exchange(id.resolved_addrinfo, nullptr);
}

void free_addrinfo(rdma_addrinfo* info) {
  while (info != nullptr) {
    rdma_addrinfo* next = info->ai_next;
    std::free(info->ai_connect);
    std::free(info->ai_route);
    std::free(info->ai_src_canonname);
    std::free(info->ai_dst_canonname);
    std::free(info->ai_src_addr);
    std::free(info->ai_dst_addr);
    std::free(info);
    info = next;
  }
}

}  // namespace nicless::cm
