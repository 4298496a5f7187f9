// SPDX-License-Identifier: MIT
#include "provider/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "provider/hw_counters.h"
#include "wire/io/raw_syscalls.h"

namespace nicless::provider {
namespace {

using wire::raw::call;

std::string hex_groups(std::span<const std::byte> bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", std::to_integer<unsigned>(bytes[i]));
    if (i != 0 && i % 2 == 0) text += ':';
    text += digits.data();
  }
  return text;
}

std::string guid_text(std::uint64_t guid) {
  std::array<std::byte, 8> bytes;
  for (unsigned i = 0; i < 8; ++i) bytes[i] = std::byte(guid >> (56 - 8 * i) & 0xff);
  return hex_groups(bytes);
}

std::string interface_name(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return if_indextoname(index, name.data()) != nullptr ? name.data() : "";
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::string whole;
  for (const std::string_view part : parts) whole += part;
  return whole;
}

void describe_port(const Device& device, const std::string& folder, std::vector<TreeFile>& files) {
  const bool up = !device.gids.empty();
  files.push_back({folder + "state", up ? "4: ACTIVE\n" : "1: DOWN\n"});
  files.push_back({folder + "phys_state", up ? "5: LinkUp\n" : "3: Disabled\n"});
  files.push_back({folder + "rate", "10 Gb/sec (1X FDR10)\n"});
  files.push_back({folder + "link_layer", "Ethernet\n"});
  files.push_back({folder + "lid", "0x0\n"});
  files.push_back({folder + "sm_lid", "0x0\n"});
  files.push_back({folder + "sm_sl", "0\n"});
  files.push_back({folder + "lid_mask_count", "0\n"});
  files.push_back({folder + "cap_mask", "0x04010000\n"});
  files.push_back({folder + "pkeys/0", "0xffff\n"});
  describe_counters(folder, files);
  for (std::size_t i = 0; i < device.gids.size(); ++i) {
    const std::string index = std::to_string(i);
    files.push_back({join({folder, "gids/", index}), join({hex_groups(device.gids[i].gid.bytes), "\n"})});
    files.push_back({join({folder, "gid_attrs/types/", index}), "RoCE v2\n"});
    files.push_back(
        {join({folder, "gid_attrs/ndevs/", index}), join({interface_name(device.gids[i].interface_index), "\n"})});
  }
}

// The interfaces that the GIDs are of: programs look here for an address to use (rdma-core's tests).
void describe_interfaces(const Device& device, const std::string& folder, std::vector<TreeFile>& files) {
  std::vector<std::uint32_t> described;
  for (const GidEntry& entry : device.gids) {
    const std::uint32_t index = entry.interface_index;
    if (std::find(described.begin(), described.end(), index) != described.end()) continue;
    described.push_back(index);
    const std::string name = interface_name(index);
    if (!name.empty()) files.push_back({join({folder, name, "/ifindex"}), std::to_string(index) + "\n"});
  }
}

void describe_device(const Device& device, std::vector<TreeFile>& files) {
  const std::string uverbs = device.verbs.dev_name;
  const std::string folder = std::string("sys/class/infiniband/") + device.verbs.name + "/";
  files.push_back({"dev/infiniband/" + uverbs, "/dev/null", true});
  files.push_back({"sys/class/infiniband_verbs/" + uverbs + "/ibdev", std::string(device.verbs.name) + "\n"});
  files.push_back({"sys/class/infiniband_verbs/" + uverbs + "/abi_version", "1\n"});
  files.push_back({folder + "node_type", "1: CA\n"});
  files.push_back({folder + "node_guid", guid_text(device.guid) + "\n"});
  files.push_back({folder + "sys_image_guid", guid_text(device.guid) + "\n"});
  files.push_back({folder + "node_desc", "nicless: RDMA without a NIC\n"});
  files.push_back({folder + "fw_ver", std::string(kFirmwareVersion) + "\n"});
  files.push_back({folder + "board_id", "nicless\n"});
  files.push_back({folder + "device/vendor", "0x6e6c\n"});
  files.push_back({folder + "device/device", "0x0001\n"});
  files.push_back({folder + "device/numa_node", "-1\n"});
  describe_interfaces(device, folder + "device/net/", files);
  describe_port(device, folder + "ports/1/", files);
}

std::string digest_of(std::span<const TreeFile> files) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: no secret and no enemy here, the folder is the user's own
  const auto mix = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const TreeFile& file : files) {
    mix(file.path);
    mix(file.contents);
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
  return text.data();
}

// The folders of the path, each if it is not there yet.
bool make_folders(const std::string& root, const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir((root + "/" + path.substr(0, slash)).c_str(), 0755) != 0 && errno != EEXIST) return false;
  }
  return true;
}

bool write_file(const std::string& path, std::string_view contents) {
  const int fd = static_cast<int>(
      call(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444));
  if (fd < 0) return false;
  const bool written = call(SYS_write, fd, contents.data(), contents.size()) == static_cast<long>(contents.size());
  wire::raw::close(fd);
  return written;
}

bool write_tree(const std::string& root, std::span<const TreeFile> files) {
  return std::all_of(files.begin(), files.end(), [&](const TreeFile& file) {
    const std::string path = root + "/" + file.path;
    if (!make_folders(root, file.path)) return false;
    return file.is_link ? symlink(file.contents.c_str(), path.c_str()) == 0 : write_file(path, file.contents);
  });
}

void remove_tree(const std::string& root) {
  nftw(
      root.c_str(), [](const char* path, const struct stat*, int, FTW*) { return remove(path); }, 8,
      FTW_DEPTH | FTW_PHYS);
}

bool is_ours_alone(const char* path) {
  struct stat status {};
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 0077) == 0;
}

bool exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

}  // namespace

std::vector<TreeFile> describe_tree(std::span<const std::unique_ptr<Device>> devices) {
  std::vector<TreeFile> files;
  files.push_back({"dev/infiniband/rdma_cm", "/dev/null", true});
  files.push_back({"sys/class/infiniband_verbs/abi_version", "6\n"});
  for (const auto& device : devices) describe_device(*device, files);
  return files;
}

std::string private_folder() {
  const std::string name = "/nicless-" + std::to_string(geteuid());
  for (const char* base :
       std::initializer_list<const char*>{std::getenv("XDG_RUNTIME_DIR"), std::getenv("TMPDIR"), "/tmp"}) {
    if (base == nullptr || *base != '/') continue;
    std::string folder = base + name;
    mkdir(folder.c_str(), 0700);
    if (is_ours_alone(folder.c_str())) return folder;
  }
  return {};
}

std::string make_tree(const std::string& folder, std::span<const TreeFile> files) {
  if (folder.empty()) return {};
  std::string root = folder + "/" + digest_of(files);
  if (exists(root)) return root;
  std::string draft = folder + "/draft-XXXXXX";
  if (mkdtemp(draft.data()) == nullptr) return {};
  // Appears whole or not at all; another process may have been faster, with the same.
  const bool made = write_tree(draft, files) && (rename(draft.c_str(), root.c_str()) == 0 || exists(root));
  if (exists(draft)) remove_tree(draft);
  return made ? root : std::string();
}

}  // namespace nicless::provider
