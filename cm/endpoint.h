// SPDX-License-Identifier: MIT
// Synchronous endpoints: rdma_create_ep(3), rdma_destroy_ep(3), rdma_get_request(3).
#pragma once

#include <rdma/rdma_cma.h>

#include "cm/cm_id.h"

namespace nicless::cm {

Result<CmId*> create_ep(rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr);
void destroy_ep(CmId& id);
Result<CmId*> next_request(CmId& listener);

}  // namespace nicless::cm
