// SPDX-License-Identifier: MIT
#include "provider/path.h"

#include <cerrno>
#include <cstring>
#include <string>

namespace nicless::provider {

queue::Result<wire::Path> path_of(const Device& device, const ibv_ah_attr& attr) {
  if (attr.is_global == 0) {
    return queue::error(EINVAL, "ah_attr.is_global must be 1: RoCE addresses are GIDs (a program's -g option)");
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
  std::memcpy(path.remote.bytes.data(), attr.grh.dgid.raw, path.remote.bytes.size());
  if (path.local.is_ipv4() != path.remote.is_ipv4()) {
    return queue::error(EINVAL, "the GIDs are of different IP versions: " + to_string(path.local) + " here, " +
                                    to_string(path.remote) + " there; choose another GID index on one side");
  }
  path.ip = {attr.grh.traffic_class, attr.grh.hop_limit};
  return path;
}

}  // namespace nicless::provider
