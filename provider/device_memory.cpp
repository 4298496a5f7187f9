// SPDX-License-Identifier: MIT
#include "provider/device_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "provider/errno_shapes.h"
#include "provider/objects.h"

namespace nicless::provider {
namespace {

constexpr std::uint32_t kLogAlignMax = 20;
constexpr std::size_t kPage = 4096;
// Hardware is accessed in words. ibv_alloc_dm(3) does not say so; programs that run here are to run there.
constexpr std::uint64_t kWord = 4;

Result<void> check_copy(const Dm& dm, std::uint64_t offset, std::size_t length) {
  if (auto alive = dm.context.check_alive(); !alive) return alive;
  if (offset > dm.size || length > dm.size - offset) {
    return queue::error(EFAULT, std::to_string(length) + " bytes at offset " + std::to_string(offset) +
                                    " do not lie within the " + std::to_string(dm.size) + " of the device memory");
  }
  if (offset % kWord != 0 || length % kWord != 0) {
    return queue::error(EINVAL, "offset and length must be multiples of 4, as device memory is accessed in words");
  }
  return {};
}

int copy_to_dm(ibv_dm* verbs, std::uint64_t offset, const void* from, std::size_t length) {
  return errno_itself("ibv_memcpy_to_dm", [&]() -> Result<void> {
    const Dm& dm = dm_of(verbs);
    auto checked = check_copy(dm, offset, length);
    if (checked && length != 0) std::memcpy(dm.start() + offset, from, length);
    return checked;
  });
}

int copy_from_dm(void* to, ibv_dm* verbs, std::uint64_t offset, std::size_t length) {
  return errno_itself("ibv_memcpy_from_dm", [&]() -> Result<void> {
    const Dm& dm = dm_of(verbs);
    auto checked = check_copy(dm, offset, length);
    if (checked && length != 0) std::memcpy(to, dm.start() + offset, length);
    return checked;
  });
}

}  // namespace

Result<ibv_dm*> alloc_dm(ibv_context* verbs, const ibv_alloc_dm_attr& attr) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  if (attr.comp_mask != 0) return queue::error(EOPNOTSUPP, "comp_mask must be 0");
  if (attr.length == 0 || attr.length > kDeviceMemoryBytesMax) {
    return queue::error(EINVAL, "the length is " + std::to_string(attr.length) + ", from 1 to " +
                                    std::to_string(kDeviceMemoryBytesMax) + " bytes (max_dm_size) can be had");
  }
  if (attr.log_align_req > kLogAlignMax) {
    return queue::error(EINVAL, "log_align_req is " + std::to_string(attr.log_align_req) + ", the largest value is " +
                                    std::to_string(kLogAlignMax));
  }
  auto dm = std::make_unique<Dm>(context, attr.length);
  const std::size_t alignment = std::max(kPage, std::size_t{1} << attr.log_align_req);
  const std::size_t bytes = (attr.length + alignment - 1) & ~(alignment - 1);
  dm->bytes.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
  if (dm->bytes == nullptr) throw std::bad_alloc();
  std::memset(dm->start(), 0, bytes);
  dm->verbs.context = verbs;
  dm->verbs.memcpy_to_dm = copy_to_dm;
  dm->verbs.memcpy_from_dm = copy_from_dm;
  return &dm.release()->verbs;
}

Result<void> free_dm(ibv_dm* verbs) {
  Dm& dm = dm_of(verbs);
  if (auto alive = dm.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = dm.users.load(); users != 0) {
    return queue::error(EBUSY, "regions of this device memory are still registered: " + std::to_string(users));
  }
  delete &dm;
  return {};
}

}  // namespace nicless::provider
