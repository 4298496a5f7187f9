// SPDX-License-Identifier: MIT
#include "cm/resolve.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "cm/address.h"
#include "cm/agent.h"
#include "provider/private.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {
namespace {

void show_addresses(CmId& id, const sockaddr& source, const sockaddr& destination) {
  std::memcpy(&id.route.addr.src_storage, &source, address_bytes(source.sa_family));
  std::memcpy(&id.route.addr.dst_storage, &destination, address_bytes(destination.sa_family));
  wire::to_raw(id.remote.address, id.route.addr.addr.ibaddr.dgid.raw);
}

Result<void> check_unresolved(const CmId& id) {
  if (id.stage == CmId::Stage::AddressResolved) return {};
  return queue::error(EINVAL, "rdma_resolve_addr has to succeed before, and once is enough");
}

void route_resolved(CmId& id) {
  id.stage = CmId::Stage::RouteResolved;
  show_path(id);
  report(new CmEvent(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
}

// The one that a connection uses, among those that a subnet administrator may have given.
std::optional<ibv_path_record> find_path(std::span<const std::byte> paths) {
  constexpr std::uint32_t kWanted = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  for (; paths.size() >= sizeof(ibv_path_data); paths = paths.subspan(sizeof(ibv_path_data))) {
    ibv_path_data data;
    std::memcpy(&data, paths.data(), sizeof data);
    if (data.flags == kWanted) return data.path;
  }
  return std::nullopt;
}

bool leads_to(const CmId& id, const ibv_path_record& path) {
  const rdma_ib_addr& own = id.route.addr.addr.ibaddr;
  return std::memcmp(&path.sgid, &own.sgid, sizeof path.sgid) == 0 &&
         std::memcmp(&path.dgid, &own.dgid, sizeof path.dgid) == 0;
}

// The id's own port, or that of the endpoint which all unbound ids of the process share; without sockets to give
// numbers, any.
Result<std::uint16_t> source_port_of(Agent& agent, const CmId& id) REQUIRES(agent.mutex) {
  if (id.binding) return id.binding->port();
  if (nicless_services_are_sockets() == 0) return agent.ports.unused_port(agent.rng);
  nicless_gsi* shared = nullptr;
  std::uint16_t port = 0;
  if (int e = nicless_gsi_shared(&shared, &port))
    return queue::error(e, "the process's UDP socket for outgoing connections cannot be opened");
  return port;
}

// As in the kernel, where no device has loopback addresses, one of those stands for whichever address there is.
bool is_anywhere(Agent& agent, const sockaddr& address) REQUIRES(agent.mutex) {
  return is_any(address) || (is_loopback(address) && !agent.devices.have_loopback());
}

// As in the kernel: what AF_IB names is a port of InfiniBand, and the devices' are RoCE's.
queue::Error no_such_port(const sockaddr& address) {
  const sockaddr_storage as_ip = to_address(to_gid(address), port_of(address));
  return queue::error(ENODEV, "AF_IB addresses are of InfiniBand ports, and this one is RoCE's: use the IP address, " +
                                  to_string(as_sockaddr(as_ip)));
}

// Where requests for the id go: its port space, unless an AF_IB address asks for another.
rdma_port_space space_of(const CmId& id, const sockaddr& address) {
  const std::uint16_t asked = address.sa_family == AF_IB ? port_space_of(address) : std::uint16_t{0};
  return asked == 0 ? id.ps : static_cast<rdma_port_space>(asked);
}

void show_source(CmId& id, const sockaddr& address) {
  sockaddr_storage shown = copy_address(address);
  if (address.sa_family == AF_IB) {
    const auto space = static_cast<std::uint16_t>(id.binding->space);
    const sockaddr_ib whole = to_ib_address(to_gid(address), space, id.binding->port());
    std::memcpy(&shown, &whole, sizeof whole);
  }
  set_port(shown, id.binding->port());
  std::memcpy(&id.route.addr.src_storage, &shown, address_bytes(shown.ss_family));
}

Result<void> bind_locked(Agent& agent, CmId& id, const sockaddr& address) REQUIRES(agent.mutex) {
  if (id.stage != CmId::Stage::Idle) return queue::error(EINVAL, why_busy(id.stage));
  const bool has_device = !is_anywhere(agent, address);
  const bool is_ib = address.sa_family == AF_IB;
  if (is_ib && has_device) return no_such_port(address);
  sockaddr_storage wanted =
      has_device ? copy_address(address) : any_address(is_ib ? AF_INET6 : address.sa_family, port_of(address));
  if (port_of(address) == 0 && nicless_services_are_sockets() == 0)
    set_port(wanted, agent.ports.unused_port(agent.rng));
  const BindRequest request{space_of(id, address), &as_sockaddr(wanted), id.may_share_address, id.is_v6_only};
  auto binding = agent.ports.bind(request, id);
  if (!binding && binding.error().errno_value == EADDRINUSE && agent.close_unused())
    binding = agent.ports.bind(request, id);
  if (!binding) return binding.error();
  if (has_device) {
    if (const auto bound = bind_device(agent, id, to_gid(address)); !bound) {
      agent.ports.release(*binding, id);
      return bound.error();
    }
  }
  id.binding = *binding;
  show_source(id, address);
  id.stage = CmId::Stage::Bound;
  return {};
}

// Which source address was asked for, by this call or an earlier rdma_bind_addr; null: any.
const sockaddr* wanted_source(Agent& agent, const CmId& id, const sockaddr* source) REQUIRES(agent.mutex) {
  if (id.binding) return id.binding->is_wildcard ? nullptr : &id.route.addr.src_addr;
  return source != nullptr && !is_anywhere(agent, *source) ? source : nullptr;
}

// To no address in particular means to this machine, as with sockets; by an address that a device has.
sockaddr_storage wanted_destination(Agent& agent, const sockaddr& destination) REQUIRES(agent.mutex) {
  if (!is_anywhere(agent, destination)) return copy_address(destination);
  const std::uint16_t port = port_of(destination);
  if (agent.devices.have_loopback()) return loopback(destination.sa_family, port);
  const auto own = agent.devices.first_address(destination.sa_family == AF_INET);
  return own ? to_address(*own, port) : copy_address(destination);
}

// Where nothing was asked for and the route's own source is no device's, the way there begins at an address that is:
// so with NICLESS_DEVICES=nicless0=127.0.0.2, and a destination of the same machine.
Result<Route> from_a_device(Agent& agent, const sockaddr& destination, const Route& route) REQUIRES(agent.mutex) {
  if (agent.devices.find(to_gid(as_sockaddr(route.source)))) return route;
  const auto own = agent.devices.first_address(destination.sa_family == AF_INET);
  if (!own) return route;
  const sockaddr_storage source = to_address(*own, 0);
  const auto other = look_up_route(destination, &as_sockaddr(source));
  return other ? other : Result<Route>(route);
}

void address_error(CmId& id, int status, const std::string& why) {
  id.failure = why;
  if (!id.is_sync)  // else the call that fails says it
    nicless_log(NICLESS_LOG_WARN, ("rdma_resolve_addr: ADDR_ERROR, " + why).c_str());
  report(new CmEvent(id, RDMA_CM_EVENT_ADDR_ERROR, status));
}

// The host has been found, or not.
void conclude(Agent& agent, CmId& id, bool is_found) REQUIRES(agent.mutex) {
  const std::unique_ptr<AddressSearch> known = std::move(id.search);
  const sockaddr& destination = as_sockaddr(known->destination);
  id.stage = known->before;
  if (!is_found)
    return address_error(id, -ETIMEDOUT,
                         "no host answers for " + wire::to_string(id.remote.address) + " on the link within " +
                             std::to_string(known->timeout_ms) + " ms (nor the router that leads there)");
  if (const auto bound = bind_device(agent, id, to_gid(as_sockaddr(known->route.source))); !bound)
    return address_error(id, -bound.error().errno_value, bound.error().why);
  set_port(known->route.source, known->source_port);
  id.source_port = known->source_port;
  id.path_mtu = std::min(path_mtu_for(known->route.mtu_bytes), id.place.active_mtu);
  id.stage = CmId::Stage::AddressResolved;
  show_addresses(id, as_sockaddr(known->route.source), destination);
  report(new CmEvent(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0));
}

Instant end_of(int timeout_ms) {
  constexpr std::chrono::hours kForEver(24 * 365);
  if (timeout_ms < 0) return now() + kForEver;
  return now() + std::max<Duration>(std::chrono::milliseconds(timeout_ms), HostSearch::kLongestLook);
}

struct ResolveRequest {
  const sockaddr* source;
  const sockaddr& destination;
  int timeout_ms;
};

Result<void> resolve_locked(Agent& agent, CmId& id, const ResolveRequest& request) REQUIRES(agent.mutex) {
  const sockaddr* source = request.source;
  if (source != nullptr && port_of(*source) != 0 && id.stage == CmId::Stage::Idle) {
    if (auto bound = bind_locked(agent, id, *source); !bound) return bound.error();
  }
  if (id.stage != CmId::Stage::Idle && id.stage != CmId::Stage::Bound) return queue::error(EINVAL, why_busy(id.stage));
  const sockaddr_storage wanted = wanted_destination(agent, request.destination);
  const sockaddr& destination = as_sockaddr(wanted);
  const sockaddr* const from = wanted_source(agent, id, source);
  auto route = look_up_route(destination, from);
  if (route && from == nullptr) route = from_a_device(agent, destination, *route);
  if (!route) return route.error();
  const auto port = source_port_of(agent, id);
  if (!port) return port.error();
  id.remote = {to_gid(destination), port_of(destination)};
  id.search = std::make_unique<AddressSearch>(AddressSearch{*route, wanted, *port, request.timeout_ms, id.stage});
  id.stage = CmId::Stage::Resolving;
  const bool has_device = agent.devices.find(to_gid(as_sockaddr(route->source))).has_value();
  const bool is_settled =
      !has_device || agent.hosts.reach(now(), as_sockaddr(route->source), destination, &id, end_of(request.timeout_ms));
  if (is_settled) conclude(agent, id, true);
  return {};
}

}  // namespace

Result<void> bind_addr(CmId& id, const sockaddr* address) {
  if (address_bytes(address) == 0) return queue::error(EINVAL, "the address is none of AF_INET, AF_INET6 and AF_IB");
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  Turn turn(**agent);
  return bind_locked(**agent, id, *address);
}

Result<void> resolve_addr(CmId& id, const sockaddr* source, const sockaddr* destination, int timeout_ms) {
  if (address_bytes(destination) == 0 || (source != nullptr && address_bytes(source) == 0))
    return queue::error(EINVAL, "the address is none of AF_INET, AF_INET6 and AF_IB");
  if (destination->sa_family == AF_IB) return no_such_port(*destination);
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    if (auto started = resolve_locked(**agent, id, {source, *destination, timeout_ms}); !started) return started;
  }
  return complete(id);
}

Result<void> resolve_route(CmId& id) {
  const auto agent = Agent::instance();
  if (!agent) return agent.error();
  {
    Turn turn(**agent);
    if (auto ok = check_unresolved(id); !ok) return ok;
    route_resolved(id);
  }
  return complete(id);
}

void show_path(CmId& id) {
  constexpr std::uint8_t kExactly = 2;  // selector of a field
  auto record = std::make_unique<ibv_sa_path_rec>();
  record->sgid = id.route.addr.addr.ibaddr.sgid;
  record->dgid = id.route.addr.addr.ibaddr.dgid;
  record->hop_limit = 64;
  record->traffic_class = id.tos;
  record->reversible = 1;
  record->numb_path = 1;
  record->pkey = 0xffff;
  record->mtu_selector = record->rate_selector = record->packet_life_time_selector = kExactly;
  record->mtu = id.path_mtu;
  record->packet_life_time = id.packet_lifetime;
  id.path_record = std::move(record);
  id.route.path_rec = id.path_record.get();
  id.route.num_paths = 1;
}

Result<void> set_path(CmId& id, std::span<const std::byte> paths) {
  constexpr std::uint8_t kSixBits = 0x3f;  // the rest is a selector
  if (auto ok = check_unresolved(id); !ok) return ok;
  if (paths.size() % sizeof(ibv_path_data) != 0)
    return queue::error(EINVAL, "the option takes an array of struct ibv_path_data");
  const auto path = find_path(paths);
  if (!path) return queue::error(EINVAL, "none of the paths is GMP, PRIMARY and BIDIRECTIONAL");
  if (!leads_to(id, *path)) return queue::error(EINVAL, "the path is one between other GIDs than the id's");
  const auto mtu = static_cast<std::uint8_t>(path->mtu & kSixBits);
  if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) return queue::error(EINVAL, "the path has an MTU that is none");
  id.path_mtu = std::min(id.path_mtu, mtu);
  id.packet_lifetime = path->packetlifetime & kSixBits;
  id.tos = path->tclass;
  route_resolved(id);
  return {};
}

void look_for_hosts(Agent& agent, Instant at_time) NO_THREAD_SAFETY_ANALYSIS {
  agent.hosts.on_deadline(at_time);
  while (const auto outcome = agent.hosts.next_outcome()) conclude(agent, *outcome->id, outcome->is_found);
}

}  // namespace nicless::cm
