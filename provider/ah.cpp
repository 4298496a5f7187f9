// SPDX-License-Identifier: MIT
#include "provider/ah.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "provider/objects.h"
#include "provider/path.h"
#include "provider/pd_mr.h"
#include "wire/io/socket_address.h"
#include "wire/multicast.h"

namespace nicless::provider {
namespace {

struct Ah {
  Ah(Pd& the_pd, const wire::Path& the_path) : pd(the_pd), path(the_path) {
    verbs.context = pd->verbs.context;
    verbs.pd = &pd->verbs;
  }
  ibv_ah verbs{};
  const PdChild pd;
  const wire::Path path;
};

struct Ends {
  wire::Gid source;
  wire::Gid destination;
};

// What stands in the 40 bytes before a datagram is an IPv6 header, or 20 bytes of nothing and an IPv4 header: the first
// four bits say which. IBTA A17.4.3.
Ends ends_of(const ibv_grh& grh) {
  constexpr std::uint32_t kIpv6 = 6;
  Ends ends;
  if (ntohl(grh.version_tclass_flow) >> 28 == kIpv6) {
    std::memcpy(ends.source.bytes.data(), grh.sgid.raw, sizeof grh.sgid.raw);
    std::memcpy(ends.destination.bytes.data(), grh.dgid.raw, sizeof grh.dgid.raw);
    return ends;
  }
  constexpr std::size_t kSourceInGrh = 20 + 12;  // the IPv4 header and its source address
  in_addr source;
  in_addr destination;
  const auto* bytes = reinterpret_cast<const std::byte*>(&grh);
  std::memcpy(&source, bytes + kSourceInGrh, sizeof source);
  std::memcpy(&destination, bytes + kSourceInGrh + sizeof source, sizeof destination);
  return {wire::gid_of(source), wire::gid_of(destination)};
}

// Where the datagram was sent to; for one to a multicast group, an address of the same IP version.
std::optional<unsigned> find_own_index(const Device& device, const Ends& ends) {
  if (!wire::is_multicast(ends.destination)) return find_gid_index(device, ends.destination);
  for (const GidEntry& entry : device.gids) {
    if (entry.gid.is_ipv4() == ends.source.is_ipv4()) return find_gid_index(device, entry.gid);
  }
  return std::nullopt;
}

}  // namespace

queue::DatagramAddress datagram_to(const ibv_ah& verbs, std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
  const wire::Path& path = reinterpret_cast<const Ah&>(verbs).path;
  queue::DatagramAddress address;
  address.local_gid = path.local.bytes;
  address.remote_gid = path.remote.bytes;
  address.traffic_class = path.ip.traffic_class;
  address.hop_limit = path.ip.hop_limit;
  address.remote_qpn = queue::Qpn(remote_qpn);
  address.remote_qkey = remote_qkey;
  return address;
}

Result<ibv_ah*> create_ah(ibv_pd* verbs, const ibv_ah_attr* attr) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  const auto path = path_of(device_of(verbs->context), *attr);
  if (!path) return path.error();
  return &std::make_unique<Ah>(pd, *path).release()->verbs;
}

Result<void> destroy_ah(ibv_ah* verbs) {
  Ah& ah = *reinterpret_cast<Ah*>(verbs);
  if (auto alive = ah.pd->context.check_alive(); !alive) return alive;
  delete &ah;
  return {};
}

Result<void> init_ah_from_wc(ibv_context* context, std::uint8_t port_num, const ibv_wc* wc, const ibv_grh* grh,
                             ibv_ah_attr* attr) {
  if ((wc->wc_flags & IBV_WC_GRH) == 0) {
    return queue::error(EINVAL, "the completion has no IBV_WC_GRH: it is not of a datagram");
  }
  const Ends ends = ends_of(*grh);
  const auto index = find_own_index(device_of(context), ends);
  if (!index) {
    return queue::error(
        EINVAL, "the datagram was sent to " + to_string(ends.destination) + ", which is no address of this device");
  }
  constexpr std::uint8_t kHopLimit = 64;
  *attr = {};
  std::memcpy(attr->grh.dgid.raw, ends.source.bytes.data(), sizeof attr->grh.dgid.raw);
  attr->grh.sgid_index = static_cast<std::uint8_t>(*index);
  attr->grh.hop_limit = kHopLimit;
  attr->is_global = 1;
  attr->sl = wc->sl;
  attr->port_num = port_num;
  return {};
}

Result<ibv_ah*> create_ah_from_wc(ibv_pd* pd, const ibv_wc* wc, const ibv_grh* grh, std::uint8_t port_num) {
  ibv_ah_attr attr;
  if (auto found = init_ah_from_wc(pd->context, port_num, wc, grh, &attr); !found) return found.error();
  return create_ah(pd, &attr);
}

}  // namespace nicless::provider
