// SPDX-License-Identifier: MIT
// Thread domains and parent domains behind their handles: ibv_alloc_td(3), ibv_alloc_parent_domain(3). A thread domain
// says that one thread uses what is made with it; our locks are short and mostly free, so it changes nothing.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "provider/context.h"
#include "provider/use_of.h"

namespace nicless::provider {

struct Td {
  explicit Td(Context& the_context) : verbs{public_context(the_context)}, context(the_context) {}
  ibv_td verbs;
  const ContextHold context;
  std::atomic<std::uint32_t> users{0};  // parent domains
};

// EINVAL: comp_mask is not 0.
queue::Result<ibv_td*> alloc_td(ibv_context* context, const ibv_td_init_attr* attr);
queue::Result<void> dealloc_td(ibv_td* td);  // EBUSY while a parent domain uses it

// Usable wherever a protection domain is, and the same protection domain to every check. The program's allocators are
// accepted and never called: they are for memory that a device reads, and no device reads ours. EINVAL: no pd, another
// context's pd or td, or an unknown bit in comp_mask.
queue::Result<ibv_pd*> alloc_parent_domain(ibv_context* context, const ibv_parent_domain_init_attr* attr);

}  // namespace nicless::provider
