// SPDX-License-Identifier: MIT
#include "provider/srq.h"

#include <cerrno>
#include <memory>
#include <string>

#include "provider/cq.h"
#include "provider/enum_number.h"
#include "provider/objects.h"
#include "provider/scatter_list.h"

namespace nicless::provider {

namespace {

Result<void> check_size(const ibv_srq_attr& attr) {
  if (attr.max_wr < 1 || attr.max_wr > queue::kQueueDepthMax) {
    return queue::error(EINVAL, "max_wr must be 1 to " + std::to_string(queue::kQueueDepthMax) + ", not " +
                                    std::to_string(attr.max_wr));
  }
  if (attr.max_sge <= queue::kSgeMax) return {};
  return queue::error(
      EINVAL, "max_sge must be at most " + std::to_string(queue::kSgeMax) + ", not " + std::to_string(attr.max_sge));
}

Result<void> check_xrc(const ibv_context* context, const ibv_srq_init_attr_ex& attr) {
  constexpr std::uint32_t kNeeded = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if ((attr.comp_mask & kNeeded) != kNeeded || attr.xrcd == nullptr || attr.cq == nullptr) {
    return queue::error(EINVAL,
                        "an XRC SRQ needs an xrcd and a cq: comp_mask must have IBV_SRQ_INIT_ATTR_XRCD and "
                        "IBV_SRQ_INIT_ATTR_CQ");
  }
  if (attr.xrcd->context == context && attr.cq->context == context) return {};
  return queue::error(EINVAL, "the PD, the XRC domain and the CQ belong to different contexts");
}

// Those of other SRQs have theirs with each queue pair.
std::unique_ptr<queue::ReceiveSource> make_denied_receives(Srq& srq) {
  ProcessFaults& faults = srq.context->runtime.faults();
  if (!srq.xrcd || !faults.has_denials()) return nullptr;
  return std::make_unique<DeniedReceives>(srq.queue, faults);
}

}  // namespace

Srq::Srq(Pd& the_pd, const ibv_srq_init_attr& attr, Xrcd* of_xrcd, Cq* of_cq)
    : context(*the_pd.context),
      pd(the_pd),
      xrcd(of_xrcd),
      cq(of_cq),
      srqn(context->runtime.next_srqn()),
      queue(attr.attr.max_wr, attr.attr.max_sge, context->async_events, &verbs),
      denied_receives(make_denied_receives(*this)) {
  verbs.context = pd->verbs.context;
  verbs.srq_context = attr.srq_context;
  verbs.pd = &pd->verbs;
  pthread_mutex_init(&verbs.mutex, nullptr);
  pthread_cond_init(&verbs.cond, nullptr);
}

// The CQ's type is whole here.
Srq::~Srq() = default;

Result<ibv_srq*> create_srq(ibv_pd* verbs, ibv_srq_init_attr* attr) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if (auto checked = check_size(attr->attr); !checked) return checked.error();
  return &std::make_unique<Srq>(pd, *attr).release()->verbs;
}

Result<ibv_srq*> create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED) return queue::error(EOPNOTSUPP, "comp_mask has unknown bits");
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    return queue::error(EINVAL, "comp_mask must have IBV_SRQ_INIT_ATTR_PD and pd must be given");
  }
  if (attr->pd->context != context) return queue::error(EINVAL, "the PD belongs to another context");
  const bool has_type = (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0;
  const auto type = has_type ? number_of(attr->srq_type) : number_of(IBV_SRQT_BASIC);
  ibv_srq_init_attr plain{attr->srq_context, attr->attr};
  if (type == IBV_SRQT_BASIC) return create_srq(attr->pd, &plain);
  if (type == IBV_SRQT_TM) {
    return queue::error(EOPNOTSUPP, "an SRQ of type IBV_SRQT_TM is hardware's tag matching, which is not offered here");
  }
  if (type != IBV_SRQT_XRC) return queue::error(EINVAL, "srq_type is no value of enum ibv_srq_type");
  Pd& pd = pd_of(attr->pd);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if (auto checked = check_xrc(context, *attr); !checked) return checked.error();
  if (auto checked = check_size(attr->attr); !checked) return checked.error();
  auto srq = std::make_unique<Srq>(pd, plain, &xrcd_of(attr->xrcd), &cq_of(attr->cq));
  srq->xrcd->group->add(*srq);
  return &srq.release()->verbs;
}

Result<void> srq_number(ibv_srq* verbs, std::uint32_t* number) {
  const Srq& srq = srq_of(verbs);
  if (auto alive = srq.context.check_alive(); !alive) return alive;
  *number = srq.srqn.value();
  return {};
}

Result<void> modify_srq(ibv_srq* verbs, const ibv_srq_attr* attr, int mask) {
  Srq& srq = srq_of(verbs);
  if (auto alive = srq.context.check_alive(); !alive) return alive;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return queue::error(EINVAL, "the mask has unknown bits");
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    return queue::error(EINVAL, "a shared receive queue cannot be resized: the device has no IBV_DEVICE_SRQ_RESIZE");
  }
  if ((mask & IBV_SRQ_LIMIT) != 0) return srq.queue.set_limit(attr->srq_limit);
  return {};
}

Result<void> query_srq(ibv_srq* verbs, ibv_srq_attr* attr) {
  Srq& srq = srq_of(verbs);
  if (auto alive = srq.context.check_alive(); !alive) return alive;
  *attr = {srq.queue.depth(), srq.queue.sge_max(), srq.queue.limit()};
  return {};
}

Result<void> destroy_srq(ibv_srq* verbs) {
  Srq& srq = srq_of(verbs);
  if (auto alive = srq.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = srq.users.load(); users != 0) {
    return queue::error(EBUSY, "still in use, queue pairs that receive from it: " + std::to_string(users));
  }
  if (srq.xrcd) {
    // First the number goes, then every turn that may have looked it up ends, then no completion is left that would
    // give its room back.
    srq.xrcd->group->remove(srq);
    srq.context->runtime.pass_through_ports();
    srq.cq->queue.purge(srq.queue.credit());
  }
  srq.context->async_events.erase_if([&](const queue::AsyncEvent& event) { return event.handle == verbs; });
  srq.async_events.wait_until_acknowledged();
  delete &srq;
  return {};
}

// No port's lock: the queue has its own, and a peer that found it empty comes again by itself.
Result<void> post_srq_recv(ibv_srq* verbs, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Srq& srq = srq_of(verbs);
  Result<void> posted = srq.context.check_alive();
  for (; wr != nullptr; wr = wr->next) {
    if (posted) posted = post_list(srq.queue, *wr);
    if (posted) continue;
    *bad_wr = wr;
    return posted;
  }
  return {};
}

}  // namespace nicless::provider
