// SPDX-License-Identifier: MIT
// Names that exist so that other libraries load beside ours, and that refuse to work. Two kinds:
// - IBVERBS_PRIVATE_25 to _65: what rdma-core's own providers (libmlx5, libmlx4, libefa, libmana) bind to in
// libibverbs.
//   The node's number changes with each release that changes the private interface; all names stand in all nodes.
//   Programs link to those providers, but nothing of them works on our devices, so nothing here is called but the
//   constructors' verbs_register_driver_*, __verbs_log and, by ibv_devinfo and pyverbs, ibv_query_gid_type.
// - IBVERBS_1.0: the interface of 2006, with other struct layouts, behind the same names of IBVERBS_1.1.
// See docs/ABI.md.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>

#include "provider/device.h"
#include "provider/errno_shapes.h"
#include "provider/symbol_version.h"

extern "C" {

// What a private call that does something returns, whatever its arguments: the errno value.
int nicless_private_refusal() {
  return EOPNOTSUPP;
}
// What one that makes something returns.
void* nicless_private_null() {
  errno = EOPNOTSUPP;
  return nullptr;
}
// What one that returns nothing does, and one that counts.
int nicless_private_nothing() {
  return 0;
}
// A provider offers itself for devices of the kernel: there are none here.
void nicless_register_driver(const void*) {}
int nicless_read_ibdev_sysfs_file() {
  errno = EOPNOTSUPP;
  return -1;
}
// ibv_gid_type_sysfs counts IB and RoCE v1 as one: 1 is RoCE v2.
int nicless_query_gid_type(ibv_context* context, uint8_t port_num, unsigned index, int* type) {
  return nicless::provider::minus_one_and_errno("ibv_query_gid_type", [&]() -> nicless::queue::Result<void> {
    ibv_gid ignored;
    auto found = nicless::provider::query_gid(nicless::provider::device_of(context), port_num, static_cast<int>(index),
                                              &ignored);
    if (found) *type = 1;
    return found;
  });
}
bool nicless_allow_disassociate_destroy = false;

void* nicless_of_2006_null() {
  errno = ENOSYS;
  return nullptr;
}
int nicless_of_2006_refusal() {
  errno = ENOSYS;
  return ENOSYS;
}

}  // extern "C"

#define COMMAND(name) NICLESS_EVERY_RELEASE(nicless_private_refusal, "ibv_cmd_" #name);
// clang-format off
COMMAND(advise_mr) COMMAND(alloc_dm) COMMAND(alloc_dmah) COMMAND(alloc_mw) COMMAND(alloc_pd) COMMAND(attach_mcast)
COMMAND(close_xrcd) COMMAND(create_ah) COMMAND(create_comp_cntr) COMMAND(create_counters) COMMAND(create_cq)
COMMAND(create_cq_ex) COMMAND(create_cq_ex2) COMMAND(create_flow) COMMAND(create_flow_action_esp) COMMAND(create_qp)
COMMAND(create_qp_ex) COMMAND(create_qp_ex2) COMMAND(create_rwq_ind_table) COMMAND(create_srq) COMMAND(create_srq_ex)
COMMAND(create_wq) COMMAND(dealloc_mw) COMMAND(dealloc_pd) COMMAND(dereg_mr) COMMAND(destroy_ah)
COMMAND(destroy_comp_cntr) COMMAND(destroy_counters) COMMAND(destroy_cq) COMMAND(destroy_flow)
COMMAND(destroy_flow_action) COMMAND(destroy_qp) COMMAND(destroy_rwq_ind_table) COMMAND(destroy_srq)
COMMAND(destroy_wq) COMMAND(detach_mcast) COMMAND(export_dmabuf_fd) COMMAND(free_dm) COMMAND(free_dmah)
COMMAND(get_context) COMMAND(inc_comp_cntr) COMMAND(inc_err_comp_cntr) COMMAND(modify_cq)
COMMAND(modify_flow_action_esp) COMMAND(modify_qp) COMMAND(modify_qp_ex) COMMAND(modify_srq) COMMAND(modify_wq)
COMMAND(open_qp) COMMAND(open_xrcd) COMMAND(poll_cq) COMMAND(post_recv) COMMAND(post_send) COMMAND(post_srq_recv)
COMMAND(qp_attach_comp_cntr) COMMAND(query_comp_cntr_caps) COMMAND(query_context) COMMAND(query_device)
COMMAND(query_device_any) COMMAND(query_device_ex) COMMAND(query_mr) COMMAND(query_port) COMMAND(query_port_speed)
COMMAND(query_qp) COMMAND(query_srq) COMMAND(read_comp_cntr) COMMAND(read_counters) COMMAND(read_err_comp_cntr)
COMMAND(reg_dm_mr) COMMAND(reg_dmabuf_mr) COMMAND(reg_mr) COMMAND(reg_mr_ex) COMMAND(req_notify_cq) COMMAND(rereg_mr)
COMMAND(resize_cq) COMMAND(set_comp_cntr) COMMAND(set_err_comp_cntr)
    // clang-format on
    NICLESS_EVERY_RELEASE(nicless_private_refusal, "execute_ioctl");
NICLESS_EVERY_RELEASE(nicless_private_refusal, "ibv_get_fw_ver");
NICLESS_EVERY_RELEASE(nicless_private_refusal, "ibv_dmabuf_heap_cc_shared_init");
NICLESS_EVERY_RELEASE(nicless_private_null, "_verbs_init_and_alloc_context");
NICLESS_EVERY_RELEASE(nicless_private_null, "verbs_open_device");
NICLESS_EVERY_RELEASE(nicless_private_null, "ibv_dmabuf_heap_alloc");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "__ioctl_final_num_attrs");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "__verbs_log");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "verbs_init_cq");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "verbs_set_ops");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "verbs_uninit_context");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "ibv_dmabuf_heap_free");
NICLESS_EVERY_RELEASE(nicless_private_nothing, "ibv_dmabuf_heap_destroy");
NICLESS_EVERY_RELEASE(nicless_read_ibdev_sysfs_file, "ibv_read_ibdev_sysfs_file");
NICLESS_EVERY_RELEASE(nicless_query_gid_type, "ibv_query_gid_type");
NICLESS_EVERY_RELEASE(nicless_allow_disassociate_destroy, "verbs_allow_disassociate_destroy");

NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_25", "IBVERBS_PRIVATE_25");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_33", "IBVERBS_PRIVATE_33");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_34", "IBVERBS_PRIVATE_34");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_57", "IBVERBS_PRIVATE_57");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_59", "IBVERBS_PRIVATE_59");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_64", "IBVERBS_PRIVATE_64");
NICLESS_VERSION(nicless_register_driver, "verbs_register_driver_65", "IBVERBS_PRIVATE_65");
NICLESS_VERSION(nicless_register_driver, "ibv_register_driver", "IBVERBS_1.1");

#define NULL_OF_2006(name) NICLESS_VERSION(nicless_of_2006_null, #name, "IBVERBS_1.0");
#define REFUSAL_OF_2006(name) NICLESS_VERSION(nicless_of_2006_refusal, #name, "IBVERBS_1.0");
// clang-format off
NULL_OF_2006(ibv_alloc_pd) NULL_OF_2006(ibv_create_ah) NULL_OF_2006(ibv_create_cq) NULL_OF_2006(ibv_create_qp)
NULL_OF_2006(ibv_create_srq) NULL_OF_2006(ibv_get_device_guid) NULL_OF_2006(ibv_get_device_list)
NULL_OF_2006(ibv_get_device_name) NULL_OF_2006(ibv_open_device) NULL_OF_2006(ibv_reg_mr)
REFUSAL_OF_2006(ibv_ack_async_event) REFUSAL_OF_2006(ibv_ack_cq_events) REFUSAL_OF_2006(ibv_attach_mcast)
REFUSAL_OF_2006(ibv_close_device) REFUSAL_OF_2006(ibv_dealloc_pd) REFUSAL_OF_2006(ibv_dereg_mr)
REFUSAL_OF_2006(ibv_destroy_ah) REFUSAL_OF_2006(ibv_destroy_cq) REFUSAL_OF_2006(ibv_destroy_qp)
REFUSAL_OF_2006(ibv_destroy_srq) REFUSAL_OF_2006(ibv_detach_mcast) REFUSAL_OF_2006(ibv_free_device_list)
REFUSAL_OF_2006(ibv_get_async_event) REFUSAL_OF_2006(ibv_get_cq_event) REFUSAL_OF_2006(ibv_modify_qp)
REFUSAL_OF_2006(ibv_modify_srq) REFUSAL_OF_2006(ibv_query_device) REFUSAL_OF_2006(ibv_query_gid)
REFUSAL_OF_2006(ibv_query_pkey) REFUSAL_OF_2006(ibv_query_port) REFUSAL_OF_2006(ibv_query_qp)
REFUSAL_OF_2006(ibv_query_srq) REFUSAL_OF_2006(ibv_resize_cq)
    // clang-format on
