// SPDX-License-Identifier: MIT
// The device list and what a device says about itself: ibv_get_device_list(3), ibv_query_device(3), ibv_query_port(3),
// ibv_query_gid_ex(3), ibv_query_pkey(3). The machine is looked at once, at the first call that needs a device; devices
// live until the process ends. Thread-safe.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "provider/gid_table.h"
#include "provider/verbs65.h"
#include "queue/result.h"

namespace nicless::provider {

using queue::Result;

inline constexpr std::uint8_t kPorts = 1;
inline constexpr const char* kFirmwareVersion = "nicless 0.1.0";
inline constexpr std::uint16_t kDefaultPkey = 0xffff;  // the one P_Key of a RoCE port; IBTA A17.4.7

// The ibv_device stands first: the program's pointer is our pointer. libmlx5 and libefa look behind it, at offset 664,
// for their own table of functions: zeroes there say that the device is not theirs.
struct Device {
  ibv_device verbs{};
  std::byte zeroes_behind[64]{};
  int index = 0;
  std::uint64_t guid = 0;  // host order
  unsigned mtu_bytes = 0;  // of the port
  std::vector<GidEntry> gids;
  std::atomic<bool> is_link_up{true};  // port_watch.h keeps it
};
static_assert(offsetof(Device, index) >= 712, "libmlx5 reads up to 712 bytes of a device");

// ibv_get_device_list(3): an array that ends with NULL, freed by free_device_list. EINVAL: NICLESS_DEVICES is not
// written right; ENODEV: it names an interface that is not there.
Result<ibv_device**> device_list(int* count);
void free_device_list(ibv_device** list);
// Those that were listed; none before.
std::vector<Device*> known_devices();

// The folder that stands for / in what programs read of our devices (file_tree.h), or NULL if there is none. Lives as
// long as the process.
const char* file_tree();

inline Device& device_of(ibv_device* device) {
  return *reinterpret_cast<Device*>(device);
}
inline Device& device_of(ibv_context* context) {
  return device_of(context->device);
}

// The GID at an index that a program gave (sgid_index), or nothing if there is none.
std::optional<GidEntry> find_gid(const Device& device, unsigned index);
// The address of all devices, if they have one and the same alone.
std::optional<wire::Gid> only_address();
// The first index that holds the address.
std::optional<unsigned> find_gid_index(const Device& device, const wire::Gid& gid);

void query_device(const Device& device, ibv_device_attr* attr);
// The older a program, the shorter its struct: attr_size bytes are written and no more.
Result<void> query_device_ex(const Device& device, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                             std::size_t attr_size);
// 48 bytes in programs before release 21, 52 before 49, 56 since: attr_size bytes are written and no more.
Result<void> query_port(const Device& device, std::uint32_t port_num, ibv_port_attr* attr, std::size_t attr_size);

// An index without an address gives the zero GID, as the kernel's sysfs does; EINVAL outside the table.
Result<void> query_gid(const Device& device, std::uint32_t port_num, int index, ibv_gid* gid);
// ENODATA: no address at this index.
Result<void> query_gid_ex(const Device& device, std::uint32_t port_num, std::uint32_t index, ibv_gid_entry* entry,
                          std::uint32_t flags, std::size_t entry_size);
// The valid entries, entry_size bytes apart; how many there are.
Result<std::size_t> query_gid_table(const Device& device, ibv_gid_entry* entries, std::size_t count,
                                    std::uint32_t flags, std::size_t entry_size);
Result<void> query_pkey(std::uint32_t port_num, int index, __be16* pkey);
Result<int> pkey_index(std::uint32_t port_num, __be16 pkey);
Result<std::uint64_t> port_speed(std::uint32_t port_num);  // in 100 Mb/s

}  // namespace nicless::provider
