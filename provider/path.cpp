// SPDX-License-Identifier: MIT
#include "provider/path.h"

#include <cerrno>
#include <string>

#include "provider/lid.h"
#include "wire/io/socket_address.h"
#include "wire/multicast.h"
#include "wire/packet/raw_gid.h"
#include "wire/qp/source_port.h"

namespace nicless::provider {

namespace {

// A multicast GID as the IP group that a sender with this address reaches.
queue::Result<wire::Gid> group_from(const wire::Gid& local, const wire::Gid& remote) {
  if (local.is_ipv4()) return wire::ipv4_group(remote);
  const auto group = wire::ipv6_group(remote);
  if (!group) {
    return queue::error(EINVAL, to_string(remote) + " is a group of IPv4, and " + to_string(local) +
                                    " at sgid_index is no IPv4 address; choose another index");
  }
  if (local == wire::gid_of(in6addr_loopback)) {
    return queue::error(EINVAL,
                        "IPv6 multicast does not leave from ::1, as Linux has no route for it; choose another "
                        "sgid_index, of IPv4 for this host alone");
  }
  return *group;
}

}  // namespace

queue::Result<wire::Path> path_of(const Device& device, const ibv_ah_attr& attr) {
  if (attr.is_global == 0) {
    if (const auto by_lid = path_to_lid(device, attr.dlid)) return wire::Path{by_lid->local, by_lid->remote, {}, 0};
    return queue::error(EINVAL,
                        "ah_attr.is_global must be 1: RoCE addresses are GIDs (a program's -g option; without "
                        "one, nicless run --lids)");
  }
  if (attr.port_num != 1) {
    return queue::error(EINVAL,
                        "ah_attr.port_num is " + std::to_string(attr.port_num) + ", the device has port 1 only");
  }
  const auto local = find_gid(device, attr.grh.sgid_index);
  if (!local) {
    return queue::error(EINVAL, "there is no address at sgid_index " + std::to_string(attr.grh.sgid_index) +
                                    "; `nicless devices` lists them");
  }
  wire::Path path;
  path.local = local->gid;
  path.remote = wire::from_raw(attr.grh.dgid.raw);
  if (wire::is_multicast(path.remote)) {
    auto group = group_from(path.local, path.remote);
    if (!group) return group.error();
    path.remote = *group;
  }
  if (path.local.is_ipv4() != path.remote.is_ipv4()) {
    return queue::error(EINVAL, "the GIDs are of different IP versions: " + to_string(path.local) + " here, " +
                                    to_string(path.remote) + " there; choose another GID index on one side");
  }
  path.ip = {attr.grh.traffic_class, attr.grh.hop_limit};
  path.flow_label = attr.grh.flow_label & wire::kFlowLabelMask;
  return path;
}

}  // namespace nicless::provider
