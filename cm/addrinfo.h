// SPDX-License-Identifier: MIT
// rdma_getaddrinfo(3): names and services as getaddrinfo(3) knows them, in RDMA's terms.
#pragma once

#include <rdma/rdma_cma.h>

#include "cm/cm_id.h"

namespace nicless::cm {

// 0, an EAI_ code of getaddrinfo(3), or -1 with errno set.
int look_up_addrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result);
void free_addrinfo(rdma_addrinfo* info);

// rdma_resolve_addrinfo(3): the same, told by an event; the look-up itself happens here and now, as librdmacm does it.
// EBUSY: the last answer was not fetched. EOPNOTSUPP: by the subnet administrator.
Result<void> resolve_addrinfo(CmId& id, const char* node, const char* service, const rdma_addrinfo* hints);
// rdma_query_addrinfo(3): the answer, once; ENOENT when there is none.
Result<rdma_addrinfo*> query_addrinfo(CmId& id);

}  // namespace nicless::cm
