// SPDX-License-Identifier: MIT
#include "provider/verbs_ops.h"

#include "provider/buffers.h"
#include "provider/device.h"
#include "provider/errno_shapes.h"
#include "provider/objects.h"
#include "provider/rt_values.h"
#include "provider/thread_domain.h"
#include "provider/unsupported.h"

namespace nicless::provider {
namespace {

// Old inline functions get the 48 bytes that they know: release 20 and before have no query_port slot.
constexpr std::size_t kOldestPortAttrSize = 48;

int op_compat_query_device(ibv_context* context, ibv_device_attr* attr) {
  query_device(device_of(context), attr);
  return 0;
}
int op_compat_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attr) {
  return errno_itself("ibv_query_port", [&] {
    return query_port(device_of(context), port_num, reinterpret_cast<ibv_port_attr*>(attr), kOldestPortAttrSize);
  });
}
int op_query_port(ibv_context* context, uint8_t port_num, ibv_port_attr* attr, size_t size) {
  return errno_itself("ibv_query_port", [&] { return query_port(device_of(context), port_num, attr, size); });
}
int op_query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                       size_t size) {
  return errno_itself("ibv_query_device_ex", [&] { return query_device_ex(device_of(context), input, attr, size); });
}
int op_query_rt_values(ibv_context*, ibv_values_ex* values) {
  return errno_itself("ibv_query_rt_values_ex", [&] { return query_rt_values(values); });
}
ibv_td* op_alloc_td(ibv_context* context, ibv_td_init_attr* attr) {
  return null_and_errno("ibv_alloc_td", [&] { return alloc_td(context, attr); });
}
int op_dealloc_td(ibv_td* td) {
  return errno_itself("ibv_dealloc_td", [&] { return dealloc_td(td); });
}
ibv_pd* op_alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  return null_and_errno("ibv_alloc_parent_domain", [&] { return alloc_parent_domain(context, attr); });
}
ibv_cq_ex* op_create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  return null_and_errno("ibv_create_cq_ex", [&] { return create_cq_ex(context, attr); });
}
int op_modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  return errno_itself("ibv_modify_cq", [&] { return modify_cq(cq, attr); });
}
int op_poll_cq(ibv_cq* cq, int count, ibv_wc* wc) {
  return poll_cq(cq, count, wc);
}
int op_req_notify_cq(ibv_cq* cq, int solicited_only) {
  return errno_itself("ibv_req_notify_cq", [&] { return req_notify_cq(cq, solicited_only != 0); });
}
int op_post_srq_recv(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return errno_itself("ibv_post_srq_recv", [&] { return post_srq_recv(srq, wr, bad_wr); });
}
int op_post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  return errno_itself(Call("ibv_post_send", qp), [&] { return post_send(qp, wr, bad_wr); });
}
int op_post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  return errno_itself(Call("ibv_post_recv", qp), [&] { return post_recv(qp, wr, bad_wr); });
}
ibv_qp* op_create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  return null_and_errno("ibv_create_qp_ex", [&] { return create_qp_ex(context, attr); });
}
ibv_srq* op_create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  return null_and_errno("ibv_create_srq_ex", [&] { return create_srq_ex(context, attr); });
}
int op_srq_number(ibv_srq* srq, uint32_t* number) {
  return errno_itself("ibv_get_srq_num", [&] { return srq_number(srq, number); });
}
ibv_xrcd* op_open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr) {
  return null_and_errno("ibv_open_xrcd", [&] { return open_xrcd(context, attr); });
}
int op_close_xrcd(ibv_xrcd* xrcd) {
  return errno_itself("ibv_close_xrcd", [&] { return close_xrcd(xrcd); });
}
ibv_qp* op_open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  return null_and_errno("ibv_open_qp", [&] { return open_qp(context, attr); });
}
void* op_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buf) {
  return null_and_errno("ibv_alloc_buf", [&] { return alloc_buf(pd, size, buf); });
}
void op_free_buf(ibv_buf* buf) {
  free_buf(buf);
}
ibv_mr* op_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  return null_and_errno("ibv_reg_mr_ex", [&] { return reg_mr_ex(pd, *attr); });
}

ibv_mw* op_alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return null_and_errno("ibv_alloc_mw", [&] { return alloc_mw(pd, type); });
}
int op_dealloc_mw(ibv_mw* mw) {
  return errno_itself("ibv_dealloc_mw", [&] { return dealloc_mw(mw); });
}
int op_bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  return errno_itself(Call("ibv_bind_mw", qp), [&] { return bind_mw(qp, mw, bind); });
}
int op_advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count) {
  return errno_itself("ibv_advise_mr", [&] { return advise_mr(pd, advice, flags, list, count); });
}
ibv_mr* op_alloc_null_mr(ibv_pd* pd) {
  return null_and_errno("ibv_alloc_null_mr", [&] { return alloc_null_mr(pd); });
}
ibv_dm* op_alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr) {
  return null_and_errno("ibv_alloc_dm", [&] { return alloc_dm(context, *attr); });
}
int op_free_dm(ibv_dm* dm) {
  return errno_itself("ibv_free_dm", [&] { return free_dm(dm); });
}
ibv_mr* op_reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access) {
  return null_and_errno("ibv_reg_dm_mr", [&] { return reg_dm_mr(pd, dm, offset, length, access); });
}

void fill_memory_ops(verbs_context& context) {
  context.context.ops.alloc_mw = op_alloc_mw;
  context.context.ops.dealloc_mw = op_dealloc_mw;
  context.context.ops.bind_mw = op_bind_mw;
  context.advise_mr = op_advise_mr;
  context.alloc_null_mr = op_alloc_null_mr;
  context.alloc_dm = op_alloc_dm;
  context.free_dm = op_free_dm;
  context.reg_dm_mr = op_reg_dm_mr;
}

}  // namespace

void fill_ops(nicless_verbs_context& context) {
  fill_with_refusals(context);
  fill_memory_ops(context.since_44);
  ibv_context_ops& ops = context.since_44.context.ops;
  ops._compat_query_device = op_compat_query_device;
  ops._compat_query_port = op_compat_query_port;
  ops.poll_cq = op_poll_cq;
  ops.req_notify_cq = op_req_notify_cq;
  ops.post_srq_recv = op_post_srq_recv;
  ops.post_send = op_post_send;
  ops.post_recv = op_post_recv;
  verbs_context& extended = context.since_44;
  extended.query_port = op_query_port;
  extended.query_device_ex = op_query_device_ex;
  extended.query_rt_values = op_query_rt_values;
  extended.alloc_td = op_alloc_td;
  extended.dealloc_td = op_dealloc_td;
  extended.alloc_parent_domain = op_alloc_parent_domain;
  extended.create_cq_ex = op_create_cq_ex;
  extended.modify_cq = op_modify_cq;
  extended.create_qp_ex = op_create_qp_ex;
  extended.create_srq_ex = op_create_srq_ex;
  extended.get_srq_num = op_srq_number;
  extended.open_xrcd = op_open_xrcd;
  extended.close_xrcd = op_close_xrcd;
  extended.open_qp = op_open_qp;
  extended.sz = sizeof context;
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context.alloc_buf = op_alloc_buf;
  context.free_buf = op_free_buf;
  context.reg_mr_ex = op_reg_mr_ex;
}

}  // namespace nicless::provider
