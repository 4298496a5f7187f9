// SPDX-License-Identifier: MIT
// Posting work requests that are in our form already.
#pragma once

#include <span>

#include "provider/qp.h"
#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::provider {

// All or none; errors as ibv_post_send.
queue::Result<void> post_built(Qp& qp, std::span<const queue::Wqe> requests);

}  // namespace nicless::provider
