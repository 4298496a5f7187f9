// SPDX-License-Identifier: MIT
// Goal: a program of any age finds each function of a context, and each field, where its own headers say.
// Method: the layouts of rdma-core 44 and 65 (layout_*.txt, by pahole) against the structs this library is built with.
// What a program holds is the ibv_context at the end of verbs_context, so slots are compared by their distance from it.
#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "provider/verbs65.h"

namespace {

struct Layout {
  std::map<std::string, long> sizes;
  std::map<std::string, long> offsets;  // "verbs_context.query_port"
};

Layout read_layout(const std::string& name) {
  Layout layout;
  std::ifstream file(std::string(TEST_DATA_DIR) + "/abi/" + name);
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    std::string second;
    words >> what >> second;
    if (second == "SIZE") {
      words >> layout.sizes[what];
    } else {
      layout.offsets[what] = std::stol(second.substr(1));
    }
  }
  return layout;
}

// The distance from the program's pointer: for slots of verbs_context from the ibv_context at its end.
long distance(const Layout& layout, const std::string& name) {
  const bool is_slot = name.rfind("verbs_context.", 0) == 0;
  return layout.offsets.at(name) - (is_slot ? layout.offsets.at("verbs_context.context") : 0);
}

const std::map<std::string, std::size_t> kOurOffsets{
    {"verbs_context.free_buf", offsetof(nicless_verbs_context, free_buf)},
    {"verbs_context.alloc_buf", offsetof(nicless_verbs_context, alloc_buf)},
    {"verbs_context.dm_export_dmabuf_fd", offsetof(nicless_verbs_context, dm_export_dmabuf_fd)},
    {"verbs_context.reg_mr_ex", offsetof(nicless_verbs_context, reg_mr_ex)},
    {"verbs_context.dealloc_dmah", offsetof(nicless_verbs_context, dealloc_dmah)},
    {"verbs_context.alloc_dmah", offsetof(nicless_verbs_context, alloc_dmah)},
    {"verbs_context.query_port", offsetof(nicless_verbs_context, since_44.query_port)},
    {"verbs_context.advise_mr", offsetof(nicless_verbs_context, since_44.advise_mr)},
    {"verbs_context.alloc_null_mr", offsetof(nicless_verbs_context, since_44.alloc_null_mr)},
    {"verbs_context.read_counters", offsetof(nicless_verbs_context, since_44.read_counters)},
    {"verbs_context.attach_counters_point_flow", offsetof(nicless_verbs_context, since_44.attach_counters_point_flow)},
    {"verbs_context.create_counters", offsetof(nicless_verbs_context, since_44.create_counters)},
    {"verbs_context.destroy_counters", offsetof(nicless_verbs_context, since_44.destroy_counters)},
    {"verbs_context.reg_dm_mr", offsetof(nicless_verbs_context, since_44.reg_dm_mr)},
    {"verbs_context.alloc_dm", offsetof(nicless_verbs_context, since_44.alloc_dm)},
    {"verbs_context.free_dm", offsetof(nicless_verbs_context, since_44.free_dm)},
    {"verbs_context.modify_flow_action_esp", offsetof(nicless_verbs_context, since_44.modify_flow_action_esp)},
    {"verbs_context.destroy_flow_action", offsetof(nicless_verbs_context, since_44.destroy_flow_action)},
    {"verbs_context.create_flow_action_esp", offsetof(nicless_verbs_context, since_44.create_flow_action_esp)},
    {"verbs_context.modify_qp_rate_limit", offsetof(nicless_verbs_context, since_44.modify_qp_rate_limit)},
    {"verbs_context.alloc_parent_domain", offsetof(nicless_verbs_context, since_44.alloc_parent_domain)},
    {"verbs_context.dealloc_td", offsetof(nicless_verbs_context, since_44.dealloc_td)},
    {"verbs_context.alloc_td", offsetof(nicless_verbs_context, since_44.alloc_td)},
    {"verbs_context.modify_cq", offsetof(nicless_verbs_context, since_44.modify_cq)},
    {"verbs_context.post_srq_ops", offsetof(nicless_verbs_context, since_44.post_srq_ops)},
    {"verbs_context.destroy_rwq_ind_table", offsetof(nicless_verbs_context, since_44.destroy_rwq_ind_table)},
    {"verbs_context.create_rwq_ind_table", offsetof(nicless_verbs_context, since_44.create_rwq_ind_table)},
    {"verbs_context.destroy_wq", offsetof(nicless_verbs_context, since_44.destroy_wq)},
    {"verbs_context.modify_wq", offsetof(nicless_verbs_context, since_44.modify_wq)},
    {"verbs_context.create_wq", offsetof(nicless_verbs_context, since_44.create_wq)},
    {"verbs_context.query_rt_values", offsetof(nicless_verbs_context, since_44.query_rt_values)},
    {"verbs_context.create_cq_ex", offsetof(nicless_verbs_context, since_44.create_cq_ex)},
    {"verbs_context.priv", offsetof(nicless_verbs_context, since_44.priv)},
    {"verbs_context.query_device_ex", offsetof(nicless_verbs_context, since_44.query_device_ex)},
    {"verbs_context.ibv_destroy_flow", offsetof(nicless_verbs_context, since_44.ibv_destroy_flow)},
    {"verbs_context.ABI_placeholder2", offsetof(nicless_verbs_context, since_44.ABI_placeholder2)},
    {"verbs_context.ibv_create_flow", offsetof(nicless_verbs_context, since_44.ibv_create_flow)},
    {"verbs_context.ABI_placeholder1", offsetof(nicless_verbs_context, since_44.ABI_placeholder1)},
    {"verbs_context.open_qp", offsetof(nicless_verbs_context, since_44.open_qp)},
    {"verbs_context.create_qp_ex", offsetof(nicless_verbs_context, since_44.create_qp_ex)},
    {"verbs_context.get_srq_num", offsetof(nicless_verbs_context, since_44.get_srq_num)},
    {"verbs_context.create_srq_ex", offsetof(nicless_verbs_context, since_44.create_srq_ex)},
    {"verbs_context.open_xrcd", offsetof(nicless_verbs_context, since_44.open_xrcd)},
    {"verbs_context.close_xrcd", offsetof(nicless_verbs_context, since_44.close_xrcd)},
    {"verbs_context._ABI_placeholder3", offsetof(nicless_verbs_context, since_44._ABI_placeholder3)},
    {"verbs_context.sz", offsetof(nicless_verbs_context, since_44.sz)},
    {"verbs_context.context", offsetof(nicless_verbs_context, since_44.context)},
    {"ibv_context_ops._compat_query_device", offsetof(ibv_context_ops, _compat_query_device)},
    {"ibv_context_ops._compat_query_port", offsetof(ibv_context_ops, _compat_query_port)},
    {"ibv_context_ops._compat_alloc_pd", offsetof(ibv_context_ops, _compat_alloc_pd)},
    {"ibv_context_ops._compat_dealloc_pd", offsetof(ibv_context_ops, _compat_dealloc_pd)},
    {"ibv_context_ops._compat_reg_mr", offsetof(ibv_context_ops, _compat_reg_mr)},
    {"ibv_context_ops._compat_rereg_mr", offsetof(ibv_context_ops, _compat_rereg_mr)},
    {"ibv_context_ops._compat_dereg_mr", offsetof(ibv_context_ops, _compat_dereg_mr)},
    {"ibv_context_ops.alloc_mw", offsetof(ibv_context_ops, alloc_mw)},
    {"ibv_context_ops.bind_mw", offsetof(ibv_context_ops, bind_mw)},
    {"ibv_context_ops.dealloc_mw", offsetof(ibv_context_ops, dealloc_mw)},
    {"ibv_context_ops._compat_create_cq", offsetof(ibv_context_ops, _compat_create_cq)},
    {"ibv_context_ops.poll_cq", offsetof(ibv_context_ops, poll_cq)},
    {"ibv_context_ops.req_notify_cq", offsetof(ibv_context_ops, req_notify_cq)},
    {"ibv_context_ops._compat_cq_event", offsetof(ibv_context_ops, _compat_cq_event)},
    {"ibv_context_ops._compat_resize_cq", offsetof(ibv_context_ops, _compat_resize_cq)},
    {"ibv_context_ops._compat_destroy_cq", offsetof(ibv_context_ops, _compat_destroy_cq)},
    {"ibv_context_ops._compat_create_srq", offsetof(ibv_context_ops, _compat_create_srq)},
    {"ibv_context_ops._compat_modify_srq", offsetof(ibv_context_ops, _compat_modify_srq)},
    {"ibv_context_ops._compat_query_srq", offsetof(ibv_context_ops, _compat_query_srq)},
    {"ibv_context_ops._compat_destroy_srq", offsetof(ibv_context_ops, _compat_destroy_srq)},
    {"ibv_context_ops.post_srq_recv", offsetof(ibv_context_ops, post_srq_recv)},
    {"ibv_context_ops._compat_create_qp", offsetof(ibv_context_ops, _compat_create_qp)},
    {"ibv_context_ops._compat_query_qp", offsetof(ibv_context_ops, _compat_query_qp)},
    {"ibv_context_ops._compat_modify_qp", offsetof(ibv_context_ops, _compat_modify_qp)},
    {"ibv_context_ops._compat_destroy_qp", offsetof(ibv_context_ops, _compat_destroy_qp)},
    {"ibv_context_ops.post_send", offsetof(ibv_context_ops, post_send)},
    {"ibv_context_ops.post_recv", offsetof(ibv_context_ops, post_recv)},
    {"ibv_context_ops._compat_create_ah", offsetof(ibv_context_ops, _compat_create_ah)},
    {"ibv_context_ops._compat_destroy_ah", offsetof(ibv_context_ops, _compat_destroy_ah)},
    {"ibv_context_ops._compat_attach_mcast", offsetof(ibv_context_ops, _compat_attach_mcast)},
    {"ibv_context_ops._compat_detach_mcast", offsetof(ibv_context_ops, _compat_detach_mcast)},
    {"ibv_context_ops._compat_async_event", offsetof(ibv_context_ops, _compat_async_event)},
    {"ibv_context.device", offsetof(ibv_context, device)},
    {"ibv_context.ops", offsetof(ibv_context, ops)},
    {"ibv_context.cmd_fd", offsetof(ibv_context, cmd_fd)},
    {"ibv_context.async_fd", offsetof(ibv_context, async_fd)},
    {"ibv_context.num_comp_vectors", offsetof(ibv_context, num_comp_vectors)},
    {"ibv_context.mutex", offsetof(ibv_context, mutex)},
    {"ibv_context.abi_compat", offsetof(ibv_context, abi_compat)},
    {"ibv_port_attr.state", offsetof(nicless_port_attr, since_44.state)},
    {"ibv_port_attr.max_mtu", offsetof(nicless_port_attr, since_44.max_mtu)},
    {"ibv_port_attr.active_mtu", offsetof(nicless_port_attr, since_44.active_mtu)},
    {"ibv_port_attr.gid_tbl_len", offsetof(nicless_port_attr, since_44.gid_tbl_len)},
    {"ibv_port_attr.port_cap_flags", offsetof(nicless_port_attr, since_44.port_cap_flags)},
    {"ibv_port_attr.max_msg_sz", offsetof(nicless_port_attr, since_44.max_msg_sz)},
    {"ibv_port_attr.bad_pkey_cntr", offsetof(nicless_port_attr, since_44.bad_pkey_cntr)},
    {"ibv_port_attr.qkey_viol_cntr", offsetof(nicless_port_attr, since_44.qkey_viol_cntr)},
    {"ibv_port_attr.pkey_tbl_len", offsetof(nicless_port_attr, since_44.pkey_tbl_len)},
    {"ibv_port_attr.lid", offsetof(nicless_port_attr, since_44.lid)},
    {"ibv_port_attr.sm_lid", offsetof(nicless_port_attr, since_44.sm_lid)},
    {"ibv_port_attr.lmc", offsetof(nicless_port_attr, since_44.lmc)},
    {"ibv_port_attr.max_vl_num", offsetof(nicless_port_attr, since_44.max_vl_num)},
    {"ibv_port_attr.sm_sl", offsetof(nicless_port_attr, since_44.sm_sl)},
    {"ibv_port_attr.subnet_timeout", offsetof(nicless_port_attr, since_44.subnet_timeout)},
    {"ibv_port_attr.init_type_reply", offsetof(nicless_port_attr, since_44.init_type_reply)},
    {"ibv_port_attr.active_width", offsetof(nicless_port_attr, since_44.active_width)},
    {"ibv_port_attr.active_speed", offsetof(nicless_port_attr, since_44.active_speed)},
    {"ibv_port_attr.phys_state", offsetof(nicless_port_attr, since_44.phys_state)},
    {"ibv_port_attr.link_layer", offsetof(nicless_port_attr, since_44.link_layer)},
    {"ibv_port_attr.flags", offsetof(nicless_port_attr, since_44.flags)},
    {"ibv_port_attr.port_cap_flags2", offsetof(nicless_port_attr, since_44.port_cap_flags2)},
    {"ibv_port_attr.active_speed_ex", offsetof(nicless_port_attr, active_speed_ex)},
    {"ibv_mr_init_attr.length", offsetof(ibv_mr_init_attr, length)},
    {"ibv_mr_init_attr.access", offsetof(ibv_mr_init_attr, access)},
    {"ibv_mr_init_attr.comp_mask", offsetof(ibv_mr_init_attr, comp_mask)},
    {"ibv_mr_init_attr.iova", offsetof(ibv_mr_init_attr, iova)},
    {"ibv_mr_init_attr.addr", offsetof(ibv_mr_init_attr, addr)},
    {"ibv_mr_init_attr.fd", offsetof(ibv_mr_init_attr, fd)},
    {"ibv_mr_init_attr.fd_offset", offsetof(ibv_mr_init_attr, fd_offset)},
    {"ibv_mr_init_attr.dmah", offsetof(ibv_mr_init_attr, dmah)},
    {"ibv_mr_init_attr.buf", offsetof(ibv_mr_init_attr, buf)},
};

const std::map<std::string, std::size_t> kOurSizes{
    {"verbs_context", sizeof(nicless_verbs_context)},
    {"ibv_context", sizeof(ibv_context)},
    {"ibv_context_ops", sizeof(ibv_context_ops)},
    {"ibv_device", sizeof(ibv_device)},
    {"ibv_device_attr_ex", sizeof(ibv_device_attr_ex)},
    {"ibv_port_attr", sizeof(nicless_port_attr)},
    {"ibv_mr_init_attr", sizeof(ibv_mr_init_attr)},
    {"ibv_qp", sizeof(ibv_qp)},
    {"ibv_cq", sizeof(ibv_cq)},
    {"ibv_srq", sizeof(ibv_srq)},
    {"ibv_mr", sizeof(ibv_mr)},
    {"ibv_pd", sizeof(ibv_pd)},
    {"ibv_ah", sizeof(ibv_ah)},
    {"ibv_wc", sizeof(ibv_wc)},
    {"ibv_comp_channel", sizeof(ibv_comp_channel)},
    {"ibv_gid_entry", sizeof(ibv_gid_entry)},
    {"ibv_async_event", sizeof(ibv_async_event)},
};

}  // namespace

TEST_CASE("every slot and field of release 65 is where its programs look for it", "[abi]") {
  const Layout newest = read_layout("layout_65.txt");
  for (const auto& [name, offset] : newest.offsets) {
    INFO(name);
    REQUIRE(kOurOffsets.count(name) == 1);
    CHECK(static_cast<long>(kOurOffsets.at(name)) == offset);
  }
  CHECK(kOurOffsets.size() == newest.offsets.size());
}

TEST_CASE("every slot and field of release 44 has the same distance from the program's pointer", "[abi]") {
  const Layout older = read_layout("layout_44.txt");
  const Layout newest = read_layout("layout_65.txt");
  for (const auto& [name, offset] : older.offsets) {
    INFO(name);
    CHECK(distance(older, name) == distance(newest, name));
  }
}

TEST_CASE("the structs that both sides of the interface hold have the sizes of release 65", "[abi]") {
  const Layout newest = read_layout("layout_65.txt");
  for (const auto& [name, size] : kOurSizes) {
    INFO(name);
    CHECK(static_cast<long>(size) == newest.sizes.at(name));
  }
}
