// SPDX-License-Identifier: MIT
#include "provider/pd_mr.h"

#include <cerrno>
#include <memory>
#include <string>

#include "provider/objects.h"

namespace nicless::provider {

Result<ibv_pd*> alloc_pd(ibv_context* verbs) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  return &std::make_unique<Pd>(context).release()->verbs;
}

Result<void> dealloc_pd(ibv_pd* verbs) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive;
  if (const std::uint32_t children = pd.children.load(); children != 0) {
    return queue::error(EBUSY, "still in use, objects that belong to it (MR, MW, SRQ, QP, AH, CQ, parent domain): " +
                                   std::to_string(children));
  }
  delete &pd;
  return {};
}

}  // namespace nicless::provider
