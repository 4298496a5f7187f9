// SPDX-License-Identifier: MIT
// Queue pairs of an id, and their way through the states: rdma_create_qp(3), rdma_create_srq(3), rdma_init_qp_attr(3).
// Called by the program's thread, without the agent's lock.
#pragma once

#include <rdma/rdma_cma.h>

#include "cm/cm_id.h"

namespace nicless::cm {

// Makes what is missing (protection domain, completion queues and channels), and leaves the queue pair in INIT.
Result<void> create_qp(CmId& id, ibv_qp_init_attr_ex& attr);
Result<void> create_qp(CmId& id, ibv_pd* pd, ibv_qp_init_attr& attr);
void destroy_qp(CmId& id);
Result<void> create_srq(CmId& id, ibv_srq_init_attr_ex& attr);
void destroy_srq(CmId& id);

// attr.qp_state in: for which state; the attributes and their mask out.
Result<int> init_qp_attr(CmId& id, ibv_qp_attr& attr);

// Both do nothing without a queue pair. The values replace the agreed ones unless they are the RDMA_MAX_ constants.
Result<void> move_to_rtr(CmId& id, std::uint8_t responder_resources);
Result<void> move_to_rts(CmId& id, std::uint8_t initiator_depth);
void move_to_error(CmId& id);

}  // namespace nicless::cm
