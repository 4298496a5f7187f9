// SPDX-License-Identifier: MIT
// More of the door of librdmacm.so.1: what the library has learnt since the symbol version RDMACM_1.0 was closed.
#include <cerrno>
#include <cstring>

#include "cm/addrinfo.h"
#include "cm/agent.h"
#include "cm/connect.h"
#include "cm/errno_shape.h"
#include "cm/rdma65.h"

using namespace nicless::cm;  // NOLINT(google-build-using-namespace): one-liners that name little else
using nicless::queue::error;

extern "C" {

// Enhanced connection establishment, for programs that bring queue pairs of their own: this device has no vendor
// options, and carries those of others.

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  return on_id("rdma_set_local_ece", id, [&](CmId& ours) -> Result<void> {
    if (ece == nullptr || ece->vendor_id == 0 || ece->comp_mask != 0)
      return error(EINVAL, "ece has to name a vendor, and comp_mask has to be 0");
    if (ours.qp != nullptr) return error(EINVAL, "the id has a queue pair: its own options are used");
    ours.local_ece = *ece;
    return {};
  });
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  return on_id("rdma_get_remote_ece", id, [&](CmId& ours) -> Result<void> {
    if (ece == nullptr) return error(EINVAL, "ece is NULL");
    if (ours.qp != nullptr) return error(EINVAL, "the id has a queue pair: its options are agreed already");
    const auto agent = Agent::instance();
    if (!agent) return agent.error();
    Turn turn(**agent);
    *ece = ours.remote_ece;
    return {};
  });
}

int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return on_id("rdma_reject_ece", id, [&](CmId& ours) {
    const auto* data = static_cast<const std::byte*>(private_data);
    return reject(ours, {data, data == nullptr ? 0 : std::size_t{private_data_len}},
                  nicless::wire::RejReason::VendorOptionNotSupported);
  });
}

// Since rdma-core 60.

int rdma_resolve_addrinfo(rdma_cm_id* id, const char* node, const char* service, const rdma_addrinfo* hints) {
  return on_id("rdma_resolve_addrinfo", id, [&](CmId& ours) { return resolve_addrinfo(ours, node, service, hints); });
}

int rdma_query_addrinfo(rdma_cm_id* id, rdma_addrinfo** info) {
  return on_id("rdma_query_addrinfo", id, [&](CmId& ours) -> Result<void> {
    if (info == nullptr) return error(EINVAL, "info is NULL");
    return hand_out(info, query_addrinfo(ours));
  });
}

int rdma_write_cm_event(rdma_cm_id* id, rdma_cm_event_type event, int status, std::uint64_t arg) {
  return on_id("rdma_write_cm_event", id, [&](CmId& ours) -> Result<void> {
    if (event != kUserEvent) return error(EINVAL, "programs write events of type RDMA_CM_EVENT_USER only");
    const auto agent = Agent::instance();
    if (!agent) return agent.error();
    Turn turn(**agent);
    auto* written = new CmEvent(ours, event, status);
    std::memcpy(&written->param, &arg, sizeof arg);  // its name in the union is not in older headers
    report(written);
    return {};
  });
}

}  // extern "C"
