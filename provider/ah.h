// SPDX-License-Identifier: MIT
// Address handles: where datagrams go, as work requests name it.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "queue/work_request.h"

namespace nicless::provider {

// What an address handle says, copied into a work request: the handle may be destroyed as soon as that is posted.
queue::DatagramAddress datagram_to(const ibv_ah& ah, std::uint32_t remote_qpn, std::uint32_t remote_qkey);

}  // namespace nicless::provider
