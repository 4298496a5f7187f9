// SPDX-License-Identifier: MIT
// XRC domains behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>

#include "provider/context.h"
#include "provider/xrc_group.h"

namespace nicless::provider {

struct Xrcd {
  Xrcd(Context& the_context, std::shared_ptr<XrcGroup> the_group)
      : verbs{public_context(the_context)}, context(the_context), group(std::move(the_group)) {}
  ibv_xrcd verbs;
  const ContextHold context;
  const std::shared_ptr<XrcGroup> group;
  std::atomic<std::uint32_t> users{0};  // SRQs, targets and opened targets that were made with this handle
};

inline Xrcd& xrcd_of(ibv_xrcd* xrcd) {
  return *reinterpret_cast<Xrcd*>(xrcd);
}

}  // namespace nicless::provider
