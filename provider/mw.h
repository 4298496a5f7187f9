// SPDX-License-Identifier: MIT
// Memory windows behind their handles: ibv_alloc_mw(3), ibv_bind_mw(3).
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::provider {

// What a bind asks for, in our form; new_rkey: the window's from then on. EINVAL: no window, a key of another one, a
// range without a region. EOPNOTSUPP: a region of another kind than ibv_reg_mr makes.
queue::Result<queue::Binding> binding_from(const ibv_mw* window, std::uint32_t new_rkey, const ibv_mw_bind_info& info);

}  // namespace nicless::provider
