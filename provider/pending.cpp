// SPDX-License-Identifier: MIT
// The objects that are not there yet: their verbs refuse with ENOSYS. A context can be opened, so that a device can be
// asked what it is.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "provider/objects.h"
#include "provider/private.h"
#include "provider/verbs_ops.h"

namespace nicless::provider {
namespace {

const queue::Error kPending{ENOSYS, "not there yet"};

nicless_verbs_context* whole(ibv_context* context) {
  auto* bytes = reinterpret_cast<std::byte*>(context);
  return reinterpret_cast<nicless_verbs_context*>(bytes - offsetof(nicless_verbs_context, since_44.context));
}

}  // namespace

Result<ibv_context*> open_device(ibv_device* device) {
  auto made = std::make_unique<nicless_verbs_context>();
  fill_ops(*made);
  ibv_context& context = made->since_44.context;
  context.device = device;
  context.cmd_fd = context.async_fd = -1;
  context.num_comp_vectors = 1;
  return &made.release()->since_44.context;
}
Result<void> close_device(ibv_context* context) {
  delete whole(context);
  return {};
}

Result<ibv_pd*> alloc_pd(ibv_context*) {
  return kPending;
}
Result<void> dealloc_pd(ibv_pd*) {
  return kPending;
}
Result<ibv_mr*> reg_mr(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned) {
  return kPending;
}
Result<void> dereg_mr(ibv_mr*) {
  return kPending;
}
Result<ibv_comp_channel*> create_comp_channel(ibv_context*) {
  return kPending;
}
Result<void> destroy_comp_channel(ibv_comp_channel*) {
  return kPending;
}
Result<ibv_cq*> create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) {
  return kPending;
}
Result<void> resize_cq(ibv_cq*, int) {
  return kPending;
}
Result<void> destroy_cq(ibv_cq*) {
  return kPending;
}
int poll_cq(ibv_cq*, int, ibv_wc*) {
  return -1;
}
Result<void> req_notify_cq(ibv_cq*, bool) {
  return kPending;
}
Result<ibv_cq*> wait_cq_event(ibv_comp_channel*) {
  return kPending;
}
void ack_cq_events(ibv_cq*, unsigned) {}
Result<ibv_srq*> create_srq(ibv_pd*, ibv_srq_init_attr*) {
  return kPending;
}
Result<void> modify_srq(ibv_srq*, const ibv_srq_attr*, int) {
  return kPending;
}
Result<void> query_srq(ibv_srq*, ibv_srq_attr*) {
  return kPending;
}
Result<void> destroy_srq(ibv_srq*) {
  return kPending;
}
Result<void> post_srq_recv(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) {
  return kPending;
}
Result<ibv_qp*> create_qp(ibv_pd*, ibv_qp_init_attr*) {
  return kPending;
}
Result<ibv_qp*> create_qp_ex(ibv_context*, ibv_qp_init_attr_ex*) {
  return kPending;
}
Result<void> modify_qp(ibv_qp*, const ibv_qp_attr*, int) {
  return kPending;
}
Result<void> query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) {
  return kPending;
}
Result<void> destroy_qp(ibv_qp*) {
  return kPending;
}
Result<void> post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) {
  return kPending;
}
Result<void> post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) {
  return kPending;
}
Result<ibv_ah*> create_ah(ibv_pd*, const ibv_ah_attr*) {
  return kPending;
}
Result<void> destroy_ah(ibv_ah*) {
  return kPending;
}
Result<void> wait_async_event(ibv_context*, ibv_async_event*) {
  return kPending;
}
void ack_async_event(ibv_async_event*) {}

}  // namespace nicless::provider

extern "C" {

int nicless_cm_register(const nicless_cm_agent*, void*) {
  return ENOSYS;
}
void nicless_cm_deadline_changed(void) {}
int nicless_gsi_open(const sockaddr*, int, nicless_gsi**, uint16_t*) {
  return ENOSYS;
}
int nicless_gsi_shared(nicless_gsi**, uint16_t*) {
  return ENOSYS;
}
void nicless_gsi_close(nicless_gsi*) {}
int nicless_gsi_send(nicless_gsi*, const uint8_t*, const nicless_endpoint*, uint8_t, const uint8_t*) {
  return ENOSYS;
}
uint64_t nicless_now(void) {
  return 0;
}
uint64_t nicless_random(void) {
  return 4;
}
void nicless_log(nicless_log_level, const char* sentence) {
  std::fprintf(stderr, "nicless: %s\n", sentence);
}
uint64_t nicless_process_generation(void) {
  return 1;
}

}  // extern "C"
