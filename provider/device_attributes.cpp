// SPDX-License-Identifier: MIT
// What the device can do, as numbers: ibv_query_device(3), ibv_query_device_ex(3), ibv_query_port(3).
#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "provider/cq.h"
#include "provider/device.h"
#include "provider/device_memory.h"
#include "provider/lid.h"
#include "provider/rt_values.h"
#include "queue/completion_queue.h"
#include "queue/work_request.h"

namespace nicless::provider {
namespace {

constexpr int kQpMax = 65536;
constexpr int kCqMax = 65536;
constexpr int kSrqMax = 65536;
constexpr int kMrMax = 1 << 20;
constexpr int kMwMax = 1 << 20;
constexpr int kPdMax = 65536;
constexpr int kAhMax = 1 << 20;
constexpr int kMulticastGroupsMax = 1024;  // each costs a descriptor
constexpr int kReadsInFlightMax = 16;      // max_rd_atomic and max_dest_rd_atomic of one queue pair
// Vendor and part that no table of known hardware holds, so that no program takes us for a NIC with its quirks.
constexpr std::uint32_t kVendorId = 0x6e6c;
constexpr std::uint32_t kVendorPartId = 1;

// 10 Gb/s: what a program may plan with for a software device (width 1X, speed FDR10).
constexpr std::uint8_t kWidth1x = 1;
constexpr std::uint8_t kSpeedFdr10 = 8;
constexpr std::uint64_t kSpeed100Mbps = 100;
constexpr std::uint8_t kPhysicalLinkUp = 5;
constexpr std::uint8_t kPhysicalDisabled = 3;

ibv_mtu mtu_code(unsigned bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (128u << (code + 1)) <= bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

ibv_port_attr port_attributes(const Device& device) {
  const bool up = !device.gids.empty() && device.is_link_up.load();
  ibv_port_attr attr{};
  attr.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr.phys_state = up ? kPhysicalLinkUp : kPhysicalDisabled;
  attr.max_mtu = IBV_MTU_4096;
  attr.active_mtu = mtu_code(device.mtu_bytes);
  attr.gid_tbl_len = static_cast<int>(kGidTableLength);
  attr.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  attr.max_msg_sz = static_cast<std::uint32_t>(queue::kMessageBytesMax);
  attr.pkey_tbl_len = 1;
  attr.max_vl_num = 1;
  attr.active_width = kWidth1x;
  attr.active_speed = kSpeedFdr10;
  attr.link_layer = IBV_LINK_LAYER_ETHERNET;
  attr.lid = lid_of(device);
  if (attr.lid == 0) attr.flags = IBV_QPF_GRH_REQUIRED;
  return attr;
}

// All memory here is pageable, so regions on demand and others take the same requests.
ibv_odp_caps odp_caps() {
  constexpr std::uint32_t kUd = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
  constexpr std::uint32_t kUc = kUd | IBV_ODP_SUPPORT_WRITE;
  constexpr std::uint32_t kRc = kUc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
  return {IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, {kRc, kUc, kUd}};
}

}  // namespace

void query_device(const Device& device, ibv_device_attr* attr) {
  *attr = {};
  std::strncpy(attr->fw_ver, kFirmwareVersion, sizeof attr->fw_ver - 1);
  attr->node_guid = htobe64(device.guid);
  attr->sys_image_guid = htobe64(device.guid);
  attr->max_mr_size = UINT64_MAX;
  attr->page_size_cap = 0xfffffffffffff000;
  attr->vendor_id = kVendorId;
  attr->vendor_part_id = kVendorPartId;
  attr->max_qp = kQpMax;
  attr->max_qp_wr = static_cast<int>(queue::kQueueDepthMax);
  attr->device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID |
                           IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
                           IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC;
  attr->max_sge = static_cast<int>(queue::kSgeMax);
  attr->max_sge_rd = static_cast<int>(queue::kSgeMax);
  attr->max_cq = kCqMax;
  attr->max_cqe = static_cast<int>(queue::kCqeMax);
  attr->max_mr = kMrMax;
  attr->max_mw = kMwMax;
  attr->max_pd = kPdMax;
  attr->max_qp_rd_atom = kReadsInFlightMax;
  attr->max_qp_init_rd_atom = kReadsInFlightMax;
  attr->max_res_rd_atom = kReadsInFlightMax * kQpMax;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->max_ah = kAhMax;
  attr->max_mcast_grp = kMulticastGroupsMax;
  attr->max_mcast_qp_attach = kQpMax;
  attr->max_total_mcast_qp_attach = kMulticastGroupsMax * kQpMax;
  attr->max_srq = kSrqMax;
  attr->max_srq_wr = static_cast<int>(queue::kQueueDepthMax);
  attr->max_srq_sge = static_cast<int>(queue::kSgeMax);
  attr->max_pkeys = 1;
  attr->local_ca_ack_delay = 15;
  attr->phys_port_cnt = kPorts;
}

Result<void> query_device_ex(const Device& device, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                             std::size_t attr_size) {
  if (input != nullptr && input->comp_mask != 0) return queue::error(EINVAL, "input->comp_mask must be 0");
  if (attr_size < offsetof(ibv_device_attr_ex, comp_mask) + sizeof attr->comp_mask) {
    return queue::error(EINVAL, "the struct is shorter than any release's");
  }
  ibv_device_attr_ex full{};
  query_device(device, &full.orig_attr);
  full.odp_caps = odp_caps();
  full.xrc_odp_caps = full.odp_caps.per_transport_caps.rc_odp_caps & ~std::uint32_t{IBV_ODP_SUPPORT_RECV};
  full.max_dm_size = kDeviceMemoryBytesMax;
  full.completion_timestamp_mask = kDeviceClockMask;
  full.hca_core_clock = kDeviceClockKhz;
  full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
  full.cq_mod_caps = {kModerationCountMax, kModerationPeriodMax};
  full.phys_port_cnt_ex = kPorts;
  std::memset(static_cast<void*>(attr), 0, attr_size);
  std::memcpy(static_cast<void*>(attr), &full, std::min(attr_size, sizeof full));
  return {};
}

Result<void> query_port(const Device& device, std::uint32_t port_num, ibv_port_attr* attr, std::size_t attr_size) {
  if (port_num != 1) {
    return queue::error(EINVAL, "there is no port " + std::to_string(port_num) + ", the device has port 1 only");
  }
  const nicless_port_attr full{port_attributes(device), 0};
  std::memset(static_cast<void*>(attr), 0, attr_size);
  std::memcpy(static_cast<void*>(attr), &full, std::min(attr_size, sizeof full));
  return {};
}

Result<std::uint64_t> port_speed(std::uint32_t port_num) {
  if (port_num != 1) return queue::error(EINVAL, "the device has port 1 only");
  return kSpeed100Mbps;
}

}  // namespace nicless::provider
