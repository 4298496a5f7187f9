// SPDX-License-Identifier: MIT
// rdma_getaddrinfo(3): names and services as getaddrinfo(3) knows them, in RDMA's terms.
#pragma once

#include <rdma/rdma_cma.h>

namespace nicless::cm {

// 0, an EAI_ code of getaddrinfo(3), or -1 with errno set.
int look_up_addrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** result);
void free_addrinfo(rdma_addrinfo* info);

}  // namespace nicless::cm
