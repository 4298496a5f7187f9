// SPDX-License-Identifier: MIT
#include "provider/thread_domain.h"

#include <cerrno>
#include <memory>
#include <string>

#include "provider/pd_mr.h"

namespace nicless::provider {

Result<ibv_td*> alloc_td(ibv_context* verbs, const ibv_td_init_attr* attr) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  if (attr->comp_mask != 0) return queue::error(EINVAL, "comp_mask must be 0");
  return &std::make_unique<Td>(context).release()->verbs;
}

Result<void> dealloc_td(ibv_td* verbs) {
  Td& td = *reinterpret_cast<Td*>(verbs);
  if (auto alive = td.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = td.users.load(); users != 0) {
    return queue::error(EBUSY, "parent domains still use this thread domain: " + std::to_string(users));
  }
  delete &td;
  return {};
}

Result<ibv_pd*> alloc_parent_domain(ibv_context* verbs, const ibv_parent_domain_init_attr* attr) {
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  if (auto alive = check_generation(context_of(verbs).generation); !alive) return alive.error();
  if (attr->pd == nullptr) return queue::error(EINVAL, "pd must be given: a parent domain stands for one");
  if ((attr->comp_mask & ~kKnown) != 0) {
    return queue::error(EINVAL, "comp_mask has bits beyond ALLOCATORS and PD_CONTEXT");
  }
  if (attr->pd->context != verbs || (attr->td != nullptr && attr->td->context != verbs)) {
    return queue::error(EINVAL, "pd or td belongs to another context");
  }
  Pd& given = pd_of(attr->pd);
  Pd& protection = given.protection != nullptr ? *given.protection : given;
  auto* const td = reinterpret_cast<Td*>(attr->td);
  return &std::make_unique<Pd>(protection, td).release()->verbs;
}

}  // namespace nicless::provider
