// SPDX-License-Identifier: MIT
#include "provider/buffers.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "provider/objects.h"

struct ibv_buf {
  ibv_pd* pd;
  std::byte* start;
  std::size_t size;
};

namespace nicless::provider {

queue::Result<void*> alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buf) {
  if (size == 0) return queue::error(EINVAL, "a buffer of 0 bytes was asked for");
  auto made = std::make_unique<ibv_buf>();
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)), size) != 0) {
    return queue::error(ENOMEM, {});
  }
  *made = {pd, static_cast<std::byte*>(memory), size};
  *buf = made.release();
  return memory;
}

void free_buf(ibv_buf* buf) {
  if (buf == nullptr) return;
  std::free(buf->start);
  delete buf;
}

queue::Result<ibv_mr*> reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, std::size_t length, unsigned access) {
  if (buf == nullptr || buf->pd != pd) return queue::error(EINVAL, "the buffer belongs to another protection domain");
  const auto start = reinterpret_cast<std::uintptr_t>(buf->start);
  const auto from = reinterpret_cast<std::uintptr_t>(addr);
  if (from < start || from - start > buf->size || length > buf->size - (from - start)) {
    return queue::error(EINVAL, "the region does not lie within the buffer");
  }
  return reg_mr(pd, addr, length, from, access);
}

queue::Result<ibv_mr*> reg_mr_ex(ibv_pd* pd, const ibv_mr_init_attr& attr) {
  constexpr std::uint64_t kKnown = 2 * NICLESS_REG_MR_BUF - 1;
  constexpr std::uint64_t kNotOurs = NICLESS_REG_MR_FD | NICLESS_REG_MR_FD_OFFSET | NICLESS_REG_MR_DMAH;
  if ((attr.comp_mask & ~kKnown) != 0) return queue::error(EINVAL, "comp_mask has an unknown bit");
  if ((attr.comp_mask & kNotOurs) != 0) return queue::error(EOPNOTSUPP, "nicless knows no DMA-buf and no DMA handle");
  if ((attr.comp_mask & NICLESS_REG_MR_ADDR) == 0) return queue::error(EINVAL, "comp_mask lacks IBV_REG_MR_MASK_ADDR");
  const auto access = static_cast<unsigned>(attr.access);
  const bool has_iova = (attr.comp_mask & NICLESS_REG_MR_IOVA) != 0;
  if ((attr.comp_mask & NICLESS_REG_MR_BUF) != 0 && !has_iova) {
    return reg_buf_mr(pd, attr.buf, attr.addr, attr.length, access);
  }
  const auto iova = has_iova ? attr.iova : reinterpret_cast<std::uintptr_t>(attr.addr);
  return reg_mr(pd, attr.addr, attr.length, iova, access);
}

}  // namespace nicless::provider
