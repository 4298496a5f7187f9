// SPDX-License-Identifier: MIT
#include "provider/lid.h"

#include <algorithm>

#include "provider/switch.h"

namespace nicless::provider {
namespace {

constexpr std::size_t kLidAt = 14;  // in a GID: the last two of its bytes

const wire::Gid* first_ipv4(const Device& device) {
  const auto is_ipv4 = [](const GidEntry& entry) { return entry.gid.is_ipv4(); };
  const auto found = std::find_if(device.gids.begin(), device.gids.end(), is_ipv4);
  return found == device.gids.end() ? nullptr : &found->gid;
}

}  // namespace

bool has_lids() {
  static const bool asked = is_switched_on("NICLESS_LIDS", "gives ports LIDs");
  return asked;
}

std::uint16_t lid_of(const Device& device) {
  const wire::Gid* const own = first_ipv4(device);
  if (!has_lids() || own == nullptr) return 0;
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(own->bytes[kLidAt]) << 8 |
                                    std::to_integer<unsigned>(own->bytes[kLidAt + 1]));
}

std::optional<LidPath> path_to_lid(const Device& device, std::uint16_t lid) {
  const wire::Gid* const own = first_ipv4(device);
  if (!has_lids() || own == nullptr || lid == 0) return std::nullopt;
  LidPath path{*own, *own};
  path.remote.bytes[kLidAt] = std::byte(lid >> 8);
  path.remote.bytes[kLidAt + 1] = std::byte(lid & 0xff);
  return path;
}

}  // namespace nicless::provider
