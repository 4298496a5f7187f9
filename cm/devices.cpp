// SPDX-License-Identifier: MIT
#include "cm/devices.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "cm/address.h"
#include "wire/packet/raw_gid.h"

namespace nicless::cm {

Result<void> Devices::open(ibv_device* device) {
  auto opened = std::make_unique<Device>();
  opened->verbs = ibv_open_device(device);
  if (opened->verbs == nullptr) return queue::error(errno, "the RDMA device cannot be opened");
  ibv_device_attr attr{};
  if (int e = ibv_query_device(opened->verbs, &attr)) return queue::error(e, "the RDMA device says nothing of itself");
  opened->pd = ibv_alloc_pd(opened->verbs);
  if (opened->pd == nullptr) return queue::error(errno, "there is no room for a protection domain");
  opened->ca_guid = be64toh(attr.node_guid);
  opened->max_initiator_depth = static_cast<std::uint8_t>(std::min(attr.max_qp_init_rd_atom, 255));
  opened->max_responder_resources = static_cast<std::uint8_t>(std::min(attr.max_qp_rd_atom, 255));
  opened->ports = attr.phys_port_cnt;
  devices_.push_back(std::move(opened));
  return {};
}

Result<const std::vector<std::unique_ptr<Device>>*> Devices::all() {
  if (!devices_.empty()) return &devices_;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) return queue::error(errno, "the RDMA devices cannot be listed");
  Result<void> opened{};
  for (int i = 0; i < count && opened; ++i) opened = open(list[i]);
  ibv_free_device_list(list);
  if (!opened) return opened.error();
  if (devices_.empty()) return queue::error(ENODEV, "there is no RDMA device");
  return &devices_;
}

template <typename F>
void Devices::visit_gids(F&& visit) {
  for (const auto& device : devices_) {
    for (std::uint8_t port = 1; port <= device->ports; ++port) {
      ibv_port_attr attr{};
      if (ibv_query_port(device->verbs, port, &attr) != 0) continue;
      for (int i = 0; i < std::min(attr.gid_tbl_len, 256); ++i) {
        ibv_gid entry{};
        if (ibv_query_gid(device->verbs, port, i, &entry) != 0) continue;
        const GidPlace place{device.get(), port, static_cast<std::uint8_t>(i), attr.active_mtu};
        if (visit(place, wire::from_raw(entry.raw))) return;
      }
    }
  }
}

Result<GidPlace> Devices::find(const wire::Gid& gid) {
  const auto devices = all();
  if (!devices) return devices.error();
  std::optional<GidPlace> found;
  visit_gids([&](const GidPlace& place, const wire::Gid& there) {
    if (there == gid) found = place;
    return found.has_value();
  });
  if (found) return *found;
  return queue::error(
      ENODEV, "no RDMA device has the address " + wire::to_string(gid) + "; `nicless devices` lists those there are");
}

bool Devices::have_loopback() {
  bool found = false;
  if (!all()) return found;
  visit_gids([&](const GidPlace&, const wire::Gid& there) {
    const sockaddr_storage address = to_address(there, 0);
    return found = is_loopback(as_sockaddr(address));
  });
  return found;
}

std::optional<wire::Gid> Devices::first_address(bool is_ipv4) {
  std::optional<wire::Gid> found;
  if (!all()) return found;
  visit_gids([&](const GidPlace&, const wire::Gid& there) {
    if (there != wire::Gid{} && there.is_ipv4() == is_ipv4) found = there;
    return found.has_value();
  });
  return found;
}

}  // namespace nicless::cm
