// SPDX-License-Identifier: MIT
// Calls of librdmacm that nicless does not serve: each fails as its man page says a failure looks, with a sentence.
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdint>

#include "cm/errno_shape.h"

using namespace nicless::cm;  // NOLINT(google-build-using-namespace): one-liners that name little else
using nicless::queue::error;

namespace {

int unsupported(const char* call, const char* why) {
  return to_int(call, [&]() -> Result<void> { return error(EOPNOTSUPP, why); });
}

constexpr const char* kNoAddrinfo = "services of a subnet administrator do not exist on RoCE";

}  // namespace

extern "C" {

// Enhanced connection establishment: this device has no vendor options to offer, so only "none" can be set.
int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  return on_id("rdma_set_local_ece", id, [&](CmId&) -> Result<void> {
    if (ece == nullptr) return error(EINVAL, "ece is NULL");
    if (ece->vendor_id == 0 && ece->options == 0) return {};
    return error(EOPNOTSUPP, "the device has no vendor options");
  });
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  return on_id("rdma_get_remote_ece", id, [&](CmId&) -> Result<void> {
    if (ece == nullptr) return error(EINVAL, "ece is NULL");
    *ece = {};
    return {};
  });
}

// Of rdma-core 60 and later; our headers may be older.
int rdma_query_addrinfo(rdma_cm_id*, rdma_addrinfo**);
int rdma_resolve_addrinfo(rdma_cm_id*, const char*, const char*, const rdma_addrinfo*);
int rdma_write_cm_event(rdma_cm_id*, rdma_cm_event_type, int, std::uint64_t);

int rdma_query_addrinfo(rdma_cm_id*, rdma_addrinfo**) {
  return unsupported("rdma_query_addrinfo", kNoAddrinfo);
}

int rdma_resolve_addrinfo(rdma_cm_id*, const char*, const char*, const rdma_addrinfo*) {
  return unsupported("rdma_resolve_addrinfo", kNoAddrinfo);
}

int rdma_write_cm_event(rdma_cm_id*, rdma_cm_event_type, int, std::uint64_t) {
  return unsupported("rdma_write_cm_event", "events of the program's own are not there yet");
}

}  // extern "C"
