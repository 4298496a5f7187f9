// SPDX-License-Identifier: MIT
#include "provider/xrcd.h"

#include <cerrno>
#include <string>

#include "provider/device.h"
#include "provider/enum_number.h"
#include "provider/objects.h"
#include "provider/qp.h"

namespace nicless::provider {

Result<ibv_xrcd*> open_xrcd(ibv_context* verbs, const ibv_xrcd_init_attr* attr) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if (attr->comp_mask >= IBV_XRCD_INIT_ATTR_RESERVED) return queue::error(EOPNOTSUPP, "comp_mask has unknown bits");
  if (attr->comp_mask != kNeeded) {
    return queue::error(EINVAL, "comp_mask must have IBV_XRCD_INIT_ATTR_FD and IBV_XRCD_INIT_ATTR_OFLAGS");
  }
  auto group = context.runtime.xrc_domains().open(device_of(verbs).index, attr->fd, attr->oflags);
  if (!group) return group.error();
  return &std::make_unique<Xrcd>(context, std::move(*group)).release()->verbs;
}

Result<void> close_xrcd(ibv_xrcd* verbs) {
  Xrcd& xrcd = xrcd_of(verbs);
  if (auto alive = xrcd.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = xrcd.users.load(); users != 0) {
    return queue::error(EBUSY, "still in use, SRQs and queue pairs that belong to it: " + std::to_string(users));
  }
  delete &xrcd;
  return {};
}

Result<ibv_qp*> open_qp(ibv_context* verbs, const ibv_qp_open_attr* attr) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  constexpr std::uint32_t kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) return queue::error(EOPNOTSUPP, "comp_mask has unknown bits");
  if ((attr->comp_mask & kNeeded) != kNeeded || attr->xrcd == nullptr) {
    return queue::error(EINVAL, "comp_mask must have IBV_QP_OPEN_ATTR_NUM, XRCD and TYPE, and xrcd must be given");
  }
  if (attr->xrcd->context != verbs) return queue::error(EINVAL, "the XRC domain belongs to another context");
  if (number_of(attr->qp_type) != IBV_QPT_XRC_RECV) {
    return queue::error(EINVAL, "only queue pairs of type IBV_QPT_XRC_RECV can be opened");
  }
  Xrcd& xrcd = xrcd_of(attr->xrcd);
  Qp* const target = xrcd.group->open(attr->qp_num);
  if (target == nullptr) {
    return queue::error(EINVAL, "this process has no IBV_QPT_XRC_RECV queue pair " + std::to_string(attr->qp_num) +
                                    " in the XRC domain, and those of other processes are theirs alone");
  }
  void* const qp_context = (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attr->qp_context : nullptr;
  return &std::make_unique<OpenedQp>(xrcd, *target, qp_context).release()->verbs.qp_base;
}

}  // namespace nicless::provider
