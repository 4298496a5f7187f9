// SPDX-License-Identifier: MIT
// nicless-devices: what a verbs program sees on this machine, printed for a person. An ordinary verbs program: under
// `nicless devices` it shows nicless's devices, by itself those of the system's libibverbs.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

struct CloseDevice {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
};
struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};

constexpr int mtu_bytes(ibv_mtu mtu) {
  return 128 << mtu;
}

const char* link_layer_name(uint8_t link_layer) {
  switch (link_layer) {
    case IBV_LINK_LAYER_ETHERNET:
      return "Ethernet";
    case IBV_LINK_LAYER_INFINIBAND:
      return "InfiniBand";
    default:
      return "link layer not known";
  }
}

const char* gid_type_name(uint32_t type) {
  switch (type) {
    case IBV_GID_TYPE_IB:
      return "IB";
    case IBV_GID_TYPE_ROCE_V1:
      return "RoCE v1";
    case IBV_GID_TYPE_ROCE_V2:
      return "RoCE v2";
    default:
      return "?";
  }
}

std::string gid_text(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, gid.raw, text.data(), text.size());
  return text.data();
}

std::string interface_name(uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return index != 0 && if_indextoname(index, name.data()) != nullptr ? name.data() : "-";
}

bool complain(const char* call, int error) {
  std::fprintf(stderr, "nicless: %s: %s\n", call, std::strerror(error));
  return false;
}

// The valid GIDs of all ports; nothing if the table cannot be read.
std::optional<std::vector<ibv_gid_entry>> gid_table(ibv_context* context, uint8_t ports) {
  std::size_t length = 0;
  for (uint8_t number = 1; number <= ports; ++number) {
    ibv_port_attr port{};
    if (const int error = ibv_query_port(context, number, &port))
      return complain("ibv_query_port", error), std::nullopt;
    length += static_cast<std::size_t>(port.gid_tbl_len);
  }
  std::vector<ibv_gid_entry> entries(length);
  const ssize_t count = length == 0 ? 0 : ibv_query_gid_table(context, entries.data(), length, 0);
  if (count < 0) return complain("ibv_query_gid_table", static_cast<int>(-count)), std::nullopt;
  entries.resize(static_cast<std::size_t>(count));
  return entries;
}

bool print_port(ibv_context* context, uint8_t number, const std::vector<ibv_gid_entry>& gids) {
  ibv_port_attr port{};
  if (const int error = ibv_query_port(context, number, &port)) return complain("ibv_query_port", error);
  std::printf("  port %u: %s, %s, MTU %d (largest %d)\n", number, ibv_port_state_str(port.state),
              link_layer_name(port.link_layer), mtu_bytes(port.active_mtu), mtu_bytes(port.max_mtu));
  std::printf("    GID  %-40s type     interface\n", "address");
  for (const ibv_gid_entry& entry : gids) {
    if (entry.port_num != number) continue;
    std::printf("    %3u  %-40s %-8s %s\n", entry.gid_index, gid_text(entry.gid).c_str(), gid_type_name(entry.gid_type),
                interface_name(entry.ndev_ifindex).c_str());
  }
  return true;
}

bool print_device(ibv_device* device) {
  const std::unique_ptr<ibv_context, CloseDevice> context(ibv_open_device(device));
  if (context == nullptr) return complain("ibv_open_device", errno);
  ibv_device_attr attributes{};
  if (const int error = ibv_query_device(context.get(), &attributes)) return complain("ibv_query_device", error);
  const auto gids = gid_table(context.get(), attributes.phys_port_cnt);
  if (!gids.has_value()) return false;
  std::printf("%s\n", ibv_get_device_name(device));
  for (uint8_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    if (!print_port(context.get(), number, *gids)) return false;
  }
  return true;
}

}  // namespace

int main() {
  int count = 0;
  const std::unique_ptr<ibv_device*, FreeList> devices(ibv_get_device_list(&count));
  if (devices == nullptr) {
    complain("ibv_get_device_list", errno);
    return 1;
  }
  if (count == 0) {
    std::fputs("nicless: no RDMA device\n", stderr);
    return 1;
  }
  bool good = true;
  for (int i = 0; i < count; ++i) good = print_device(devices.get()[i]) && good;
  return good ? 0 : 1;
}
