// SPDX-License-Identifier: MIT
#include "provider/mr.h"

#include <cerrno>
#include <memory>

#include "provider/enum_number.h"
#include "provider/objects.h"
#include "queue/format.h"

namespace nicless::provider {
namespace {

// Hints, which a provider may ignore: IBV_ACCESS_OPTIONAL_RANGE.
constexpr unsigned kOptionalAccess = 0x3ff00000;
// IBV_ACCESS_FLUSH_GLOBAL and _PERSISTENT, which the headers of release 44 do not know.
constexpr unsigned kFlushAccess = 0x300;
constexpr unsigned kDeviceMemoryAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;
constexpr int kReregFlags = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;

queue::MrTable& regions_of(Mr& mr) {
  return (*mr.pd)->context->regions;
}

Result<void> check_flags(unsigned access) {
  if ((access & kFlushAccess) != 0) return queue::error(EOPNOTSUPP, "RDMA FLUSH is not supported");
  return {};
}

// ibv_advise_mr of one range.
Result<void> prefetch(Pd& pd, const ibv_sge& sge, bool is_for_writing, bool may_wait) {
  const queue::Sge range{sge.addr, sge.length, queue::LKey(sge.lkey)};
  const auto found = pd.context->regions.find_on_demand(pd.id, range, is_for_writing);
  if (!found) return found.error();
  if (queue::is_mapped(*found, sge.length, is_for_writing) || !may_wait) return {};
  return queue::error(EFAULT, queue::format("not all of the %u bytes at 0x%llx is mapped", sge.length,
                                            static_cast<unsigned long long>(sge.addr)));
}

}  // namespace

Result<ibv_mr*> reg_mr(ibv_pd* verbs, void* address, std::size_t length, std::uint64_t iova, unsigned access) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if (auto checked = check_flags(access); !checked) return checked.error();
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  const auto keys =
      pd.context->regions.add(pd.id, static_cast<std::byte*>(address), iova, length, access & ~kOptionalAccess);
  if (!keys) return keys.error();
  auto mr = std::make_unique<Mr>(pd, Mr::Kind::Ordinary, *keys);
  mr->verbs.addr = address;
  mr->verbs.length = length;
  return &mr.release()->verbs;
}

// First the keys go, then every turn that may have looked them up ends.
Result<void> dereg_mr(ibv_mr* verbs) {
  Mr& mr = mr_of(verbs);
  Context& context = *(*mr.pd)->context;
  if (auto alive = check_generation(context.generation); !alive) return alive;
  if (auto removed = context.regions.remove(queue::LKey(verbs->lkey)); !removed) return removed;
  context.runtime.pass_through_ports();
  delete &mr;
  return {};
}

Result<void> check_rereg_mr(ibv_mr* verbs, int flags, const void* address, std::size_t length, int access) {
  if (mr_of(verbs).kind != Mr::Kind::Ordinary) {
    return queue::error(EINVAL, "null regions and device memory cannot be registered anew");
  }
  if ((flags & ~kReregFlags) != 0) return queue::error(EINVAL, "flags has bits that mean nothing");
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0 && (address == nullptr || length == 0)) {
    return queue::error(EINVAL, "IBV_REREG_MR_CHANGE_TRANSLATION needs an address and a length");
  }
  if (access != 0 && (flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) {
    return queue::error(EINVAL, "access is given, but not IBV_REREG_MR_CHANGE_ACCESS");
  }
  return {};
}

Result<void> rereg_mr(ibv_mr* verbs, int flags, ibv_pd* pd, void* address, std::size_t length, unsigned access) {
  Mr& mr = mr_of(verbs);
  if (auto alive = (*mr.pd)->context.check_alive(); !alive) return alive;
  if (auto checked = check_flags(access); !checked) return checked;
  queue::RegionChange change;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    change.place = {static_cast<std::byte*>(address), reinterpret_cast<std::uintptr_t>(address), length};
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    if (pd == nullptr || pd->context != verbs->context) {
      return queue::error(EINVAL, "the new PD is null, or of another context");
    }
    change.pd = pd_of(pd).id;
  }
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) change.access = access & ~kOptionalAccess;
  if (auto changed = regions_of(mr).change(queue::LKey(verbs->lkey), change); !changed) return changed;
  if (change.pd) mr.set_pd(pd_of(pd));
  if (change.place) {
    verbs->addr = address;
    verbs->length = length;
  }
  (*mr.pd)->context->runtime.pass_through_ports();
  return {};
}

Result<ibv_mr*> alloc_null_mr(ibv_pd* verbs) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  auto mr = std::make_unique<Mr>(pd, Mr::Kind::Null, queue::MemoryKeys{pd.context->regions.add_null(pd.id), {}});
  mr->verbs.length = SIZE_MAX;
  return &mr.release()->verbs;
}

Result<ibv_mr*> reg_dm_mr(ibv_pd* verbs, ibv_dm* verbs_dm, std::uint64_t offset, std::size_t length, unsigned access) {
  Pd& pd = pd_of(verbs);
  Dm& dm = dm_of(verbs_dm);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if ((access & ~(kDeviceMemoryAccess | kOptionalAccess)) != 0) {
    return queue::error(EINVAL, "device memory takes local write, remote rights and IBV_ACCESS_ZERO_BASED only");
  }
  if ((access & IBV_ACCESS_ZERO_BASED) == 0) {
    return queue::error(EINVAL, "device memory has no address of its own: IBV_ACCESS_ZERO_BASED must be set");
  }
  if (dm.verbs.context != verbs->context) return queue::error(EINVAL, "the device memory belongs to another context");
  if (offset > dm.size || length > dm.size - offset) {
    return queue::error(EINVAL, queue::format("%zu bytes at offset %llu do not lie within the %zu of the device memory",
                                              length, static_cast<unsigned long long>(offset), dm.size));
  }
  // A region of no bytes is legal within a page only (see MrTable::add), and where within it means nothing.
  std::byte* const start = dm.start() + offset + (length == 0 ? 1 : 0);
  const auto keys = pd.context->regions.add(pd.id, start, 0, length, access & ~kOptionalAccess);
  if (!keys) return keys.error();
  auto mr = std::make_unique<Mr>(pd, Mr::Kind::DeviceMemory, *keys, &dm);
  mr->verbs.length = length;
  return &mr.release()->verbs;
}

Result<void> advise_mr(ibv_pd* verbs, ibv_advise_mr_advice advice, std::uint32_t flags, const ibv_sge* list,
                       std::uint32_t count) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive;
  if ((flags & ~std::uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}) != 0) {
    return queue::error(EINVAL, "flags has bits that mean nothing");
  }
  const auto number = number_of(advice);
  if (number > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return queue::error(EOPNOTSUPP, "there is no such advice");
  if (count == 0) return queue::error(EINVAL, "the list is empty");
  const bool is_for_writing = number == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool must_succeed = number != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT && (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (auto done = prefetch(pd, list[i], is_for_writing, must_succeed); !done) return done;
  }
  return {};
}

}  // namespace nicless::provider
