// SPDX-License-Identifier: MIT
// Memory that the provider hands out and registers: ibv_alloc_buf(3), ibv_reg_mr_ex(3) of releases 59 to 65. Ours is
// ordinary page-aligned memory. Thread-safe.
#pragma once

#include <cstddef>

#include "provider/verbs65.h"
#include "queue/result.h"

namespace nicless::provider {

// *buf names the memory until free_buf.
queue::Result<void*> alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buf);
void free_buf(ibv_buf* buf);
// EINVAL: not the protection domain the buffer was made in, or outside the buffer.
queue::Result<ibv_mr*> reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, std::size_t length, unsigned access);
// EOPNOTSUPP: DMA-buf or a DMA handle is asked for.
queue::Result<ibv_mr*> reg_mr_ex(ibv_pd* pd, const ibv_mr_init_attr& attr);

}  // namespace nicless::provider
