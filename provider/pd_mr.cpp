// SPDX-License-Identifier: MIT
#include "provider/pd_mr.h"

#include <cerrno>
#include <memory>
#include <string>

#include "provider/objects.h"

namespace nicless::provider {
namespace {

// Hints, which a provider may ignore: IBV_ACCESS_OPTIONAL_RANGE.
constexpr unsigned kOptionalAccess = 0x3ff00000;
// IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT, which the headers of release 44 do not know.
constexpr unsigned kFlushAccess = 0x300;

struct Mr {
  Mr(Pd& the_pd, void* address, std::size_t length, queue::MemoryKeys keys) : pd(the_pd) {
    verbs.context = pd->verbs.context;
    verbs.pd = &pd->verbs;
    verbs.addr = address;
    verbs.length = length;
    verbs.lkey = keys.lkey.value();
    verbs.rkey = keys.rkey.value();
    verbs.handle = verbs.lkey;
  }
  ibv_mr verbs{};
  const PdChild pd;
};

}  // namespace

Result<ibv_pd*> alloc_pd(ibv_context* verbs) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  return &std::make_unique<Pd>(context).release()->verbs;
}

Result<void> dealloc_pd(ibv_pd* verbs) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive;
  if (const std::uint32_t children = pd.children.load(); children != 0) {
    return queue::error(
        EBUSY, std::to_string(children) + " objects (MR, SRQ, QP, AH, CQ or parent domain) still belong to this PD");
  }
  delete &pd;
  return {};
}

Result<ibv_mr*> reg_mr(ibv_pd* verbs, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if ((access & kFlushAccess) != 0) return queue::error(EOPNOTSUPP, "RDMA FLUSH is not supported");
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) {
    return queue::error(EOPNOTSUPP,
                        "on-demand paging (IBV_ACCESS_ON_DEMAND) is not supported, as query_device_ex says");
  }
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  const auto keys =
      pd.context->regions.add(pd.id, static_cast<std::byte*>(address), iova, length, access & ~kOptionalAccess);
  if (!keys) return keys.error();
  return &std::make_unique<Mr>(pd, address, length, *keys).release()->verbs;
}

// First the keys go, then every turn that may have looked them up ends.
Result<void> dereg_mr(ibv_mr* verbs) {
  Mr& mr = *reinterpret_cast<Mr*>(verbs);
  Context& context = *mr.pd->context;
  if (auto alive = check_generation(context.generation); !alive) return alive;
  if (!context.regions.remove(queue::LKey(verbs->lkey))) return queue::error(EINVAL, "this region is not registered");
  context.runtime.pass_through_ports();
  delete &mr;
  return {};
}

}  // namespace nicless::provider
