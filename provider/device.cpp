// SPDX-License-Identifier: MIT
#include "provider/device.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "provider/file_tree.h"
#include "provider/log.h"
#include "provider/process.h"
#include "queue/mutex.h"
#include "wire/io/raw_syscalls.h"
#include "wire/packet/raw_gid.h"

namespace nicless::provider {
namespace {

using wire::raw::call;

// The machine's own id, or nothing where it has none.
std::string read_machine_id() {
  std::array<char, 64> text{};
  const int fd = static_cast<int>(call(SYS_openat, AT_FDCWD, "/etc/machine-id", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return {};
  const long length = call(SYS_read, fd, text.data(), text.size());
  wire::raw::close(fd);
  return length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : std::string();
}

// "those that are: lo, eth0".
std::string names_of(const std::vector<Interface>& interfaces) {
  if (interfaces.empty()) return "none is (ip link set DEVICE up)";
  std::string names = "those that are: ";
  for (const Interface& interface : interfaces)
    names += (&interface == &interfaces.front() ? "" : ", ") + interface.name;
  return names;
}

// An interface is asked for by its name or by an address of it.
std::string asked(const std::string& name_or_address) {
  return (is_address(name_or_address) ? "with the address " : "") + name_or_address;
}

Result<std::vector<Interface>> select(const std::vector<Interface>& all, const DeviceSpec& spec) {
  if (spec.interfaces.empty()) return all;
  std::vector<Interface> selected;
  for (const std::string& name : spec.interfaces) {
    const auto found = find_interface(all, name);
    if (!found) {
      return queue::error(ENODEV,
                          "NICLESS_DEVICES: there is no interface " + asked(name) + " that is up; " + names_of(all));
    }
    selected.push_back(*found);
  }
  return selected;
}

Result<std::unique_ptr<Device>> make_device(const std::vector<Interface>& all, const DeviceSpec& spec, int index) {
  const auto interfaces = select(all, spec);
  if (!interfaces) return interfaces.error();
  auto device = std::make_unique<Device>();
  device->index = index;
  device->guid = device_guid(read_machine_id(), *interfaces, spec.name);
  device->mtu_bytes = device_mtu_bytes(*interfaces);
  device->gids = make_gid_table(*interfaces);
  ibv_device& verbs = device->verbs;
  verbs.node_type = IBV_NODE_CA;
  verbs.transport_type = IBV_TRANSPORT_IB;
  spec.name.copy(verbs.name, sizeof verbs.name - 1);
  ("uverbs" + std::to_string(index)).copy(verbs.dev_name, sizeof verbs.dev_name - 1);
  return device;
}

using Devices = std::vector<std::unique_ptr<Device>>;

// Where programs find a device's files; what does not fit into 255 bytes is left out.
void set_paths(ibv_device& verbs, const std::string& tree) {
  const auto set = [](char(&field)[IBV_SYSFS_PATH_MAX], const std::string& path) {
    if (path.size() < sizeof field) path.copy(field, sizeof field - 1);
  };
  set(verbs.dev_path, tree + "/sys/class/infiniband_verbs/" + verbs.dev_name);
  set(verbs.ibdev_path, tree + "/sys/class/infiniband/" + verbs.name);
}

Result<Devices> make_devices() {
  check_log_level();
  const char* text = std::getenv("NICLESS_DEVICES");
  std::vector<DeviceSpec> specs{{"nicless0", {}}};
  if (text != nullptr && *text != '\0') {
    auto parsed = parse_device_specs(text);
    if (!parsed) return parsed.error();
    specs = std::move(*parsed);
  }
  const std::vector<Interface> interfaces = read_interfaces();
  Devices devices;
  for (const DeviceSpec& spec : specs) {
    auto device = make_device(interfaces, spec, static_cast<int>(devices.size()));
    if (!device) return device.error();
    devices.push_back(std::move(*device));
  }
  return devices;
}

struct Inventory {
  Devices devices;
  std::string tree;  // empty where none could be made
};

// Made once, then never changed or destroyed: a program may look at its devices while the process ends, and a forked
// child keeps those of its parent. Whoever finds it made takes no lock.
struct Registry {
  std::atomic<const Inventory*> inventory{nullptr};
  queue::Mutex mutex;  // of whoever makes it
};
Registry& registry() {
  static Registry& made = *new Registry;
  return made;
}

// Another thread of the parent's may have held the lock.
void on_child_fork() {
  new (&registry().mutex) queue::Mutex;
}

Result<const Inventory*> inventory() {
  Registry& all = registry();
  if (const Inventory* made = all.inventory.load()) return made;
  watch_forks(on_child_fork);
  const queue::MutexLock lock(all.mutex);
  if (const Inventory* made = all.inventory.load()) return made;
  auto devices = make_devices();
  if (!devices) return devices.error();
  std::string tree = make_tree(private_folder(), describe_tree(*devices));
  for (const auto& device : *devices) set_paths(device->verbs, tree);
  const auto* made = new Inventory{std::move(*devices), std::move(tree)};
  all.inventory.store(made);
  return made;
}

Result<void> check_port(std::uint32_t port_num) {
  if (port_num >= 1 && port_num <= kPorts) return {};
  return queue::error(EINVAL, "there is no port " + std::to_string(port_num) + ", the device has port 1 only");
}

void fill(const Device& device, unsigned index, ibv_gid_entry* entry) {
  *entry = {};
  wire::to_raw(device.gids[index].gid, entry->gid.raw);
  entry->gid_index = index;
  entry->port_num = 1;
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  entry->ndev_ifindex = device.gids[index].interface_index;
}

Result<void> check_entry_query(std::uint32_t flags, std::size_t entry_size) {
  if (flags != 0) return queue::error(EINVAL, "flags must be 0");
  if (entry_size < sizeof(ibv_gid_entry)) return queue::error(EINVAL, "the size of an entry is below 32 bytes");
  return {};
}

}  // namespace

Result<ibv_device**> device_list(int* count) {
  const auto all = inventory();
  if (!all) return all.error();
  const Devices& devices = (*all)->devices;
  auto* list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
  if (list == nullptr) return queue::error(ENOMEM, {});
  for (std::size_t i = 0; i < devices.size(); ++i) list[i] = &devices[i]->verbs;
  if (count != nullptr) *count = static_cast<int>(devices.size());
  return list;
}

void free_device_list(ibv_device** list) {
  std::free(list);
}

std::vector<Device*> known_devices() {
  std::vector<Device*> known;
  const Inventory* const made = registry().inventory.load();
  if (made == nullptr) return known;
  for (const auto& device : made->devices) known.push_back(device.get());
  return known;
}

const char* file_tree() {
  const auto all = inventory();
  return all && !(*all)->tree.empty() ? (*all)->tree.c_str() : nullptr;
}

std::optional<GidEntry> find_gid(const Device& device, unsigned index) {
  if (index >= device.gids.size()) return std::nullopt;
  return device.gids[index];
}

std::optional<wire::Gid> only_address() {
  const auto all = inventory();
  std::optional<wire::Gid> only;
  if (!all) return only;
  for (const auto& device : (*all)->devices) {
    for (const GidEntry& entry : device->gids) {
      if (only && *only != entry.gid) return std::nullopt;
      only = entry.gid;
    }
  }
  return only;
}

std::optional<unsigned> find_gid_index(const Device& device, const wire::Gid& gid) {
  for (unsigned i = 0; i < device.gids.size(); ++i) {
    if (device.gids[i].gid == gid) return i;
  }
  return std::nullopt;
}

Result<void> query_gid(const Device& device, std::uint32_t port_num, int index, ibv_gid* gid) {
  if (auto port = check_port(port_num); !port) return port;
  if (index < 0 || index >= static_cast<int>(kGidTableLength)) {
    return queue::error(
        EINVAL, "GID index " + std::to_string(index) + " is outside the table of " + std::to_string(kGidTableLength));
  }
  wire::to_raw(find_gid(device, static_cast<unsigned>(index)).value_or(GidEntry{}).gid, gid->raw);
  return {};
}

Result<void> query_gid_ex(const Device& device, std::uint32_t port_num, std::uint32_t index, ibv_gid_entry* entry,
                          std::uint32_t flags, std::size_t entry_size) {
  if (auto port = check_port(port_num); !port) return port;
  if (auto sizes = check_entry_query(flags, entry_size); !sizes) return sizes;
  if (index >= kGidTableLength) return queue::error(EINVAL, "the GID index is outside the table");
  if (index >= device.gids.size()) {
    return queue::error(ENODATA, "there is no address at GID index " + std::to_string(index));
  }
  fill(device, index, entry);
  return {};
}

Result<std::size_t> query_gid_table(const Device& device, ibv_gid_entry* entries, std::size_t count,
                                    std::uint32_t flags, std::size_t entry_size) {
  if (auto sizes = check_entry_query(flags, entry_size); !sizes) return sizes.error();
  if (count < device.gids.size()) {
    return queue::error(
        EINVAL, "room for " + std::to_string(count) + " entries, the table has " + std::to_string(device.gids.size()));
  }
  auto* at = reinterpret_cast<std::byte*>(entries);
  for (unsigned i = 0; i < device.gids.size(); ++i, at += entry_size) {
    ibv_gid_entry entry;
    fill(device, i, &entry);
    std::memset(at, 0, entry_size);
    std::memcpy(at, &entry, sizeof entry);
  }
  return device.gids.size();
}

Result<void> query_pkey(std::uint32_t port_num, int index, __be16* pkey) {
  if (auto port = check_port(port_num); !port) return port;
  if (index != 0) return queue::error(EINVAL, "the P_Key table has index 0 only");
  *pkey = htons(kDefaultPkey);
  return {};
}

Result<int> pkey_index(std::uint32_t port_num, __be16 pkey) {
  if (auto port = check_port(port_num); !port) return port.error();
  if (pkey != htons(kDefaultPkey)) return queue::error(EINVAL, "the P_Key table holds 0xffff only");
  return 0;
}

}  // namespace nicless::provider
