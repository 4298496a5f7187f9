// SPDX-License-Identifier: MIT
// The objects of libibverbs behind their public structs: the ibv_ struct stands first, ours behind it, so the program's
// pointer is our pointer. The doors (verbs_exports.cpp, verbs_ops.cpp) convert results to the shapes of the man pages
// and do nothing else; what a call does is here. Thread-safe, as libibverbs is (ibv_* man pages; docs/THREADS.md).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/result.h"

namespace nicless::provider {

using queue::Result;

// Contexts: ibv_open_device(3). EBUSY while anything belongs to it.
Result<ibv_context*> open_device(ibv_device* device);
Result<void> close_device(ibv_context* context);

// Protection domains: ibv_alloc_pd(3). EBUSY while anything belongs to it.
Result<ibv_pd*> alloc_pd(ibv_context* context);
Result<void> dealloc_pd(ibv_pd* pd);

// Memory regions: ibv_reg_mr(3).
Result<ibv_mr*> reg_mr(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, unsigned access);
Result<void> dereg_mr(ibv_mr* mr);  // EBUSY: windows are bound to it
// ibv_rereg_mr(3): what libibverbs itself refuses (IBV_REREG_MR_ERR_INPUT), and the rest (IBV_REREG_MR_ERR_CMD).
Result<void> check_rereg_mr(ibv_mr* mr, int flags, const void* address, std::size_t length, int access);
Result<void> rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, unsigned access);
Result<ibv_mr*> alloc_null_mr(ibv_pd* pd);
Result<void> advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, const ibv_sge* list,
                       std::uint32_t count);

// Device memory: ibv_alloc_dm(3). EBUSY while regions of it are registered.
Result<ibv_dm*> alloc_dm(ibv_context* context, const ibv_alloc_dm_attr& attr);
Result<void> free_dm(ibv_dm* dm);
Result<ibv_mr*> reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access);

// Memory windows: ibv_alloc_mw(3), ibv_bind_mw(3).
Result<ibv_mw*> alloc_mw(ibv_pd* pd, ibv_mw_type type);
Result<void> dealloc_mw(ibv_mw* mw);
Result<void> bind_mw(ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind* bind);  // sets mw->rkey

// Completion channels and queues: ibv_create_comp_channel(3), ibv_create_cq(3), ibv_get_cq_event(3).
Result<ibv_comp_channel*> create_comp_channel(ibv_context* context);
Result<void> destroy_comp_channel(ibv_comp_channel* channel);
Result<ibv_cq*> create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector);
Result<ibv_cq_ex*> create_cq_ex(ibv_context* context, const ibv_cq_init_attr_ex* attr);
Result<void> modify_cq(ibv_cq* cq, const ibv_modify_cq_attr* attr);
Result<void> resize_cq(ibv_cq* cq, int cqe);
Result<void> destroy_cq(ibv_cq* cq);  // waits for unacknowledged events
int poll_cq(ibv_cq* cq, int count, ibv_wc* wc);
Result<void> req_notify_cq(ibv_cq* cq, bool solicited_only);
Result<ibv_cq*> wait_cq_event(ibv_comp_channel* channel);
void ack_cq_events(ibv_cq* cq, unsigned count);

// Shared receive queues: ibv_create_srq(3).
Result<ibv_srq*> create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);  // writes back what it got
Result<ibv_srq*> create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
Result<void> srq_number(ibv_srq* srq, std::uint32_t* number);
Result<void> modify_srq(ibv_srq* srq, const ibv_srq_attr* attr, int mask);
Result<void> query_srq(ibv_srq* srq, ibv_srq_attr* attr);
Result<void> destroy_srq(ibv_srq* srq);
Result<void> post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// XRC domains: ibv_open_xrcd(3), ibv_open_qp(3). EBUSY while anything belongs to it.
Result<ibv_xrcd*> open_xrcd(ibv_context* context, const ibv_xrcd_init_attr* attr);
Result<void> close_xrcd(ibv_xrcd* xrcd);
Result<ibv_qp*> open_qp(ibv_context* context, const ibv_qp_open_attr* attr);

// Queue pairs: ibv_create_qp(3), ibv_create_qp_ex(3), ibv_modify_qp(3), ibv_query_qp(3), ibv_post_send(3),
// ibv_post_recv(3).
Result<ibv_qp*> create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);  // writes back the capacities it got
Result<ibv_qp*> create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
Result<void> modify_qp(ibv_qp* qp, const ibv_qp_attr* attr, int mask);
Result<void> query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr);
Result<void> destroy_qp(ibv_qp* qp);  // EBUSY while it is attached to a multicast group
Result<void> post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
Result<void> post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// The ibv_wr_* interface of a queue pair; EOPNOTSUPP for one that was not created with send_ops_flags.
Result<ibv_qp_ex*> extended_qp(ibv_qp* qp);

// Address handles: ibv_create_ah(3), ibv_create_ah_from_wc(3).
Result<ibv_ah*> create_ah(ibv_pd* pd, const ibv_ah_attr* attr);
Result<void> destroy_ah(ibv_ah* ah);
// The way back to the sender of a received datagram. grh: the first 40 bytes of the receive buffer. EINVAL for one that
// was sent to a multicast group, EPROTONOSUPPORT where grh holds no IP header, as libibverbs has it.
Result<void> init_ah_from_wc(ibv_context* context, std::uint8_t port_num, const ibv_wc* wc, const ibv_grh* grh,
                             ibv_ah_attr* attr);
Result<ibv_ah*> create_ah_from_wc(ibv_pd* pd, const ibv_wc* wc, const ibv_grh* grh, std::uint8_t port_num);

// Multicast groups of unreliable datagrams: ibv_attach_mcast(3).
Result<void> attach_mcast(ibv_qp* qp, const ibv_gid* gid);
Result<void> detach_mcast(ibv_qp* qp, const ibv_gid* gid);

// Asynchronous events: ibv_get_async_event(3).
Result<void> wait_async_event(ibv_context* context, ibv_async_event* event);
void ack_async_event(ibv_async_event* event);

}  // namespace nicless::provider
