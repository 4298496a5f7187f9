// SPDX-License-Identifier: MIT
#include "provider/ah.h"

#include <netinet/in.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "provider/objects.h"
#include "provider/path.h"
#include "provider/pd_mr.h"
#include "wire/io/socket_address.h"
#include "wire/multicast.h"
#include "wire/packet/raw_gid.h"

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

// What the 40 bytes before a datagram say of its IP header.
struct IpHeader {
  wire::Gid source;
  wire::Gid destination;
  wire::IpOptions options;
  std::uint32_t flow_label = 0;
};

constexpr std::uint32_t kIpv4 = 4;
constexpr std::uint32_t kIpv6 = 6;

IpHeader read_ipv6(const ibv_grh& grh) {
  const std::uint32_t first = ntohl(grh.version_tclass_flow);
  IpHeader header;
  header.source = wire::from_raw(grh.sgid.raw);
  header.destination = wire::from_raw(grh.dgid.raw);
  header.options = {static_cast<std::uint8_t>(first >> 20 & 0xff), grh.hop_limit};
  header.flow_label = first & 0xfffff;
  return header;
}

IpHeader read_ipv4(std::span<const std::uint8_t, 20> bytes) {
  in_addr source;
  in_addr destination;
  std::memcpy(&source, &bytes[12], sizeof source);
  std::memcpy(&destination, &bytes[16], sizeof destination);
  return {wire::gid_of(source), wire::gid_of(destination), {bytes[1], bytes[8]}, 0};
}

// An IPv6 header, or 20 bytes of nothing and an IPv4 header: the first four bits say which. IBTA A17.4.3.
Result<IpHeader> read_header(const ibv_grh& grh) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(&grh), sizeof grh);
  const std::span<const std::uint8_t, 20> ipv4 = bytes.last<20>();
  if (bytes[0] >> 4 == kIpv6) {
    if (grh.next_hdr == IPPROTO_UDP) return read_ipv6(grh);
  } else if (ipv4[0] >> 4 == kIpv4) {
    return read_ipv4(ipv4);
  }
  return queue::error(EPROTONOSUPPORT,
                      "grh is not the 40 bytes that stand before a received datagram: it holds neither "
                      "an IPv4 header nor one of IPv6 with UDP behind it");
}

}  // namespace

queue::DatagramAddress datagram_to(const ibv_ah& verbs, std::uint32_t remote_qpn, std::uint32_t remote_qkey) {
  const wire::Path& path = reinterpret_cast<const Ah&>(verbs).path;
  queue::DatagramAddress address;
  address.local_gid = path.local.bytes;
  address.remote_gid = path.remote.bytes;
  address.traffic_class = path.ip.traffic_class;
  address.hop_limit = path.ip.hop_limit;
  address.flow_label = path.flow_label;
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
  *attr = {};
  attr->dlid = wc->slid;
  attr->sl = wc->sl;
  attr->src_path_bits = wc->dlid_path_bits;
  attr->port_num = port_num;
  if ((wc->wc_flags & IBV_WC_GRH) == 0) return {};  // nor does libibverbs; ibv_create_ah says that it needs more
  const auto header = read_header(*grh);
  if (!header) return header.error();
  const std::string destination = to_string(header->destination);
  if (wire::is_multicast(header->destination)) {
    return queue::error(EINVAL, "the datagram was sent to the group " + destination +
                                    ", so its GRH does not say which own address to answer from; fill an ibv_ah_attr "
                                    "with grh.sgid as dgid and an own sgid_index");
  }
  const auto index = find_gid_index(device_of(context), header->destination);
  if (!index) {
    return queue::error(EINVAL, "the datagram was sent to " + destination + ", which is no address of this device");
  }
  wire::to_raw(header->source, attr->grh.dgid.raw);
  attr->grh.sgid_index = static_cast<std::uint8_t>(*index);
  attr->grh.hop_limit = header->options.hop_limit;
  attr->grh.traffic_class = header->options.traffic_class;
  attr->grh.flow_label = header->flow_label;
  attr->is_global = 1;
  return {};
}

Result<ibv_ah*> create_ah_from_wc(ibv_pd* pd, const ibv_wc* wc, const ibv_grh* grh, std::uint8_t port_num) {
  ibv_ah_attr attr;
  if (auto found = init_ah_from_wc(pd->context, port_num, wc, grh, &attr); !found) return found.error();
  return create_ah(pd, &attr);
}

}  // namespace nicless::provider
