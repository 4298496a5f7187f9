// SPDX-License-Identifier: MIT
// What <rdma/rdma_cma.h> of rdma-core 60 and later has and older ones lack: the numbers, and the functions that are
// exported all the same.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

namespace nicless::cm {

inline constexpr auto kAddrinfoResolved = static_cast<rdma_cm_event_type>(16);
inline constexpr auto kAddrinfoError = static_cast<rdma_cm_event_type>(17);
inline constexpr auto kUserEvent = static_cast<rdma_cm_event_type>(18);

inline constexpr int kLookUpBySa = 0x10;   // RAI_SA
inline constexpr int kLookUpByDns = 0x20;  // RAI_DNS

}  // namespace nicless::cm

extern "C" {

int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info);
int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service, const rdma_addrinfo* hints);
int rdma_write_cm_event(rdma_cm_id* id, rdma_cm_event_type event, int status, std::uint64_t arg);

}  // extern "C"
