// SPDX-License-Identifier: MIT
#include "provider/mw.h"

#include <cerrno>
#include <memory>

#include "provider/enum_number.h"
#include "provider/mr.h"
#include "provider/objects.h"
#include "provider/pd_mr.h"
#include "provider/post.h"
#include "provider/qp.h"
#include "queue/format.h"

namespace nicless::provider {
namespace {

constexpr std::uint32_t kKeyByte = 0xff;

struct Mw {
  Mw(Pd& the_pd, ibv_mw_type type, queue::RKey rkey) : pd(the_pd) {
    verbs.context = pd->verbs.context;
    verbs.pd = &pd->verbs;
    verbs.rkey = rkey.value();
    verbs.handle = rkey.value() >> 8;
    verbs.type = type;
  }
  ibv_mw verbs{};
  const PdChild pd;
};

}  // namespace

queue::Result<queue::Binding> binding_from(const ibv_mw* window, std::uint32_t new_rkey, const ibv_mw_bind_info& info) {
  if (window == nullptr) return queue::error(EINVAL, "there is no window to bind: bind_mw.mw is null");
  if (((window->rkey ^ new_rkey) & ~kKeyByte) != 0) {
    return queue::error(EINVAL, queue::format("rkey 0x%x is not this window's: it and 0x%x, which is, may differ in "
                                              "their lower 8 bits only (ibv_inc_rkey)",
                                              new_rkey, window->rkey));
  }
  if (info.mr == nullptr && info.length != 0) return queue::error(EINVAL, "there is no region to bind to: mr is null");
  if (info.mr != nullptr && mr_of(info.mr).kind != Mr::Kind::Ordinary) {
    return queue::error(EOPNOTSUPP, "windows are for regions of ibv_reg_mr, not for null regions or device memory");
  }
  queue::Binding binding{queue::RKey(new_rkey), {}, info.addr, info.length, info.mw_access_flags};
  if (info.mr != nullptr) binding.region = queue::LKey(info.mr->lkey);
  return binding;
}

Result<ibv_mw*> alloc_mw(ibv_pd* verbs, ibv_mw_type type) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  const auto number = number_of(type);
  if (number != IBV_MW_TYPE_1 && number != IBV_MW_TYPE_2) {
    return queue::error(EINVAL, "type is neither IBV_MW_TYPE_1 nor IBV_MW_TYPE_2");
  }
  const auto rkey = pd.context->regions.add_window(pd.id, static_cast<queue::WindowType>(number));
  if (!rkey) return rkey.error();
  return &std::make_unique<Mw>(pd, type, *rkey).release()->verbs;
}

Result<void> dealloc_mw(ibv_mw* verbs) {
  Mw& mw = *reinterpret_cast<Mw*>(verbs);
  if (auto alive = mw.pd->context.check_alive(); !alive) return alive;
  if (!mw.pd->context->regions.remove_window(queue::RKey(verbs->rkey))) {
    return queue::error(EINVAL,
                        queue::format("rkey 0x%x is no window's: the program has changed mw->rkey", verbs->rkey));
  }
  delete &mw;
  return {};
}

// A work request like any other, but for the key: the provider chooses it, and tells it at once.
Result<void> bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind* bind) {
  if ((bind->bind_info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0) {
    return queue::error(EINVAL, "a type 1 window cannot be zero-based");
  }
  const std::uint32_t new_rkey = ibv_inc_rkey(mw->rkey);
  const auto binding = binding_from(mw, new_rkey, bind->bind_info);
  if (!binding) return binding.error();
  queue::Wqe request;
  request.wr_id = bind->wr_id;
  request.opcode = queue::SendOpcode::BindMw;
  request.signaled = (bind->send_flags & IBV_SEND_SIGNALED) != 0;
  request.fence = (bind->send_flags & IBV_SEND_FENCE) != 0;
  binding->put_into(request);
  auto posted = post_built(qp_of(qp), std::span(&request, 1));
  if (posted) mw->rkey = new_rkey;
  return posted;
}

}  // namespace nicless::provider
