// SPDX-License-Identifier: MIT
#include "provider/unsupported.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "provider/refusal.h"

namespace nicless::provider {
namespace {

// A call's name as a template argument, so that each slot gets a refusal that knows its name.
template <std::size_t N>
struct Name {
  constexpr Name(const char (&literal)[N]) { std::copy_n(literal, N, text); }
  char text[N];
};

constexpr Name kPlain("nicless does not support this");
constexpr Name kFlows("flows steer raw Ethernet packets, and there are none here: only RDMA travels");
constexpr Name kWorkQueues("work queues of their own spread raw Ethernet packets, and there are none here: use an SRQ");
constexpr Name kCounters("there is no hardware whose packets could be counted; --pcap records them");
constexpr Name kRates("packets are not paced: packet_pacing_caps of ibv_query_device_ex is 0");
constexpr Name kTags("tags are matched by no queue here: tm_caps of ibv_query_device_ex is 0");
constexpr Name kDmaHandles("no device reads our memory, so there is nothing to say of how it should");

template <Name name, Name why, typename F>
struct Refusal;
template <Name name, Name why, typename R, typename... Args>
struct Refusal<name, why, R (*)(Args...)> {
  static R call(Args...) { return refusal<R>(name.text, why.text); }
};

template <Name name, Name why = kPlain, typename F>
void refuse(F& slot) {
  slot = &Refusal<name, why, F>::call;
}

// Nothing has called these since 2009 but their place must hold something.
void* dead_slot() {
  errno = EOPNOTSUPP;
  return nullptr;
}

int refuse_post_srq_ops(ibv_srq*, ibv_ops_wr* op, ibv_ops_wr** bad_op) {
  *bad_op = op;
  return refusal<int>("ibv_post_srq_ops", kTags.text);
}

int refuse_dm_export(ibv_dm*) {
  return refused_descriptor("ibv_dm_export_dmabuf_fd", "memory of this process is no DMA-buf");
}

void fill_basic(ibv_context_ops& ops) {
  refuse<"ibv_query_device">(ops._compat_query_device);
  refuse<"ibv_query_port">(ops._compat_query_port);
  refuse<"ibv_poll_cq">(ops.poll_cq);
  refuse<"ibv_req_notify_cq">(ops.req_notify_cq);
  refuse<"ibv_post_srq_recv">(ops.post_srq_recv);
  refuse<"ibv_post_send">(ops.post_send);
  refuse<"ibv_post_recv">(ops.post_recv);
  for (void* (**slot)(void) :
       {&ops._compat_alloc_pd,     &ops._compat_dealloc_pd, &ops._compat_reg_mr,     &ops._compat_rereg_mr,
        &ops._compat_dereg_mr,     &ops._compat_create_cq,  &ops._compat_cq_event,   &ops._compat_resize_cq,
        &ops._compat_destroy_cq,   &ops._compat_create_srq, &ops._compat_modify_srq, &ops._compat_query_srq,
        &ops._compat_destroy_srq,  &ops._compat_create_qp,  &ops._compat_query_qp,   &ops._compat_modify_qp,
        &ops._compat_destroy_qp,   &ops._compat_create_ah,  &ops._compat_destroy_ah, &ops._compat_attach_mcast,
        &ops._compat_detach_mcast, &ops._compat_async_event}) {
    *slot = dead_slot;
  }
}

void fill_memory(verbs_context& context) {
  refuse<"ibv_alloc_parent_domain">(context.alloc_parent_domain);
  refuse<"ibv_alloc_td">(context.alloc_td);
  refuse<"ibv_dealloc_td">(context.dealloc_td);
}

void fill_queues(verbs_context& context) {
  refuse<"ibv_create_cq_ex">(context.create_cq_ex);
  refuse<"ibv_modify_cq">(context.modify_cq);
  refuse<"ibv_create_srq_ex">(context.create_srq_ex);
  refuse<"ibv_get_srq_num">(context.get_srq_num);
  context.post_srq_ops = refuse_post_srq_ops;
  refuse<"ibv_create_qp_ex">(context.create_qp_ex);
  refuse<"ibv_open_qp">(context.open_qp);
  refuse<"ibv_modify_qp_rate_limit", kRates>(context.modify_qp_rate_limit);
  refuse<"ibv_open_xrcd">(context.open_xrcd);
  refuse<"ibv_close_xrcd">(context.close_xrcd);
  refuse<"ibv_create_wq", kWorkQueues>(context.create_wq);
  refuse<"ibv_modify_wq", kWorkQueues>(context.modify_wq);
  refuse<"ibv_destroy_wq", kWorkQueues>(context.destroy_wq);
  refuse<"ibv_create_rwq_ind_table", kWorkQueues>(context.create_rwq_ind_table);
  refuse<"ibv_destroy_rwq_ind_table", kWorkQueues>(context.destroy_rwq_ind_table);
}

void fill_queries_and_flows(verbs_context& context) {
  refuse<"ibv_query_port">(context.query_port);
  refuse<"ibv_query_device_ex">(context.query_device_ex);
  refuse<"ibv_query_rt_values_ex">(context.query_rt_values);
  refuse<"ibv_create_flow", kFlows>(context.ibv_create_flow);
  refuse<"ibv_destroy_flow", kFlows>(context.ibv_destroy_flow);
  refuse<"ibv_create_flow", kFlows>(context.ABI_placeholder1);
  refuse<"ibv_destroy_flow", kFlows>(context.ABI_placeholder2);
  refuse<"ibv_create_flow_action_esp", kFlows>(context.create_flow_action_esp);
  refuse<"ibv_modify_flow_action_esp", kFlows>(context.modify_flow_action_esp);
  refuse<"ibv_destroy_flow_action", kFlows>(context.destroy_flow_action);
  refuse<"ibv_create_counters", kCounters>(context.create_counters);
  refuse<"ibv_destroy_counters", kCounters>(context.destroy_counters);
  refuse<"ibv_read_counters", kCounters>(context.read_counters);
  refuse<"ibv_attach_counters_point_flow", kCounters>(context.attach_counters_point_flow);
}

void fill_since_65(nicless_verbs_context& context) {
  refuse<"ibv_free_buf">(context.free_buf);
  refuse<"ibv_alloc_buf">(context.alloc_buf);
  context.dm_export_dmabuf_fd = refuse_dm_export;
  refuse<"ibv_reg_mr_ex">(context.reg_mr_ex);
  refuse<"ibv_dealloc_dmah", kDmaHandles>(context.dealloc_dmah);
  refuse<"ibv_alloc_dmah", kDmaHandles>(context.alloc_dmah);
}

}  // namespace

void fill_with_refusals(nicless_verbs_context& context) {
  fill_basic(context.since_44.context.ops);
  fill_memory(context.since_44);
  fill_queues(context.since_44);
  fill_queries_and_flows(context.since_44);
  fill_since_65(context);
}

}  // namespace nicless::provider
