// SPDX-License-Identifier: MIT
#include "provider/srq.h"

#include <cerrno>
#include <memory>
#include <string>

#include "provider/objects.h"
#include "provider/scatter_list.h"

namespace nicless::provider {

Srq::Srq(Pd& the_pd, const ibv_srq_init_attr& attr)
    : context(*the_pd.context), pd(the_pd), queue(attr.attr.max_wr, attr.attr.max_sge, context->async_events, &verbs) {
  verbs.context = pd->verbs.context;
  verbs.srq_context = attr.srq_context;
  verbs.pd = &pd->verbs;
  pthread_mutex_init(&verbs.mutex, nullptr);
  pthread_cond_init(&verbs.cond, nullptr);
}

Result<ibv_srq*> create_srq(ibv_pd* verbs, ibv_srq_init_attr* attr) {
  Pd& pd = pd_of(verbs);
  if (auto alive = pd.context.check_alive(); !alive) return alive.error();
  if (attr->attr.max_wr < 1 || attr->attr.max_wr > queue::kQueueDepthMax) {
    return queue::error(EINVAL, "max_wr must be 1 to " + std::to_string(queue::kQueueDepthMax) + ", not " +
                                    std::to_string(attr->attr.max_wr));
  }
  if (attr->attr.max_sge > queue::kSgeMax) {
    return queue::error(EINVAL, "max_sge must be at most " + std::to_string(queue::kSgeMax) + ", not " +
                                    std::to_string(attr->attr.max_sge));
  }
  return &std::make_unique<Srq>(pd, *attr).release()->verbs;
}

Result<void> modify_srq(ibv_srq* verbs, const ibv_srq_attr* attr, int mask) {
  Srq& srq = srq_of(verbs);
  if (auto alive = srq.context.check_alive(); !alive) return alive;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return queue::error(EINVAL, "the mask has unknown bits");
  if ((mask & IBV_SRQ_MAX_WR) != 0) return queue::error(EOPNOTSUPP, "a shared receive queue cannot be resized");
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
    return queue::error(EBUSY, std::to_string(users) + " queue pairs still receive from this SRQ");
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
