// SPDX-License-Identifier: MIT
#include "provider/qp_attributes.h"

#include <cerrno>
#include <string>

#include "provider/enum_number.h"
#include "provider/log.h"
#include "provider/path.h"

namespace nicless::provider {
namespace {

namespace bit = wire::attr_mask;

std::uint16_t mtu_bytes(ibv_mtu mtu) {
  return static_cast<std::uint16_t>(128u << mtu);
}

ibv_mtu mtu_code(std::uint16_t bytes) {
  int code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && mtu_bytes(static_cast<ibv_mtu>(code)) < bytes) ++code;
  return static_cast<ibv_mtu>(code);
}

// What is no state becomes one that no edge leads to.
wire::QpState state_of(unsigned number) {
  constexpr unsigned kNoState = 0xff;
  return static_cast<wire::QpState>(number <= IBV_QPS_ERR ? number : kNoState);
}

// Alternate paths are for InfiniBand links: the kernel refuses them over RoCE, and so there is none to migrate to.
queue::Result<void> check_migration(const ibv_qp_attr& attr, std::uint32_t mask) {
  if ((mask & bit::kAltPath) != 0) {
    return queue::error(EINVAL, "IBV_QP_ALT_PATH: RoCE has no alternate paths and no path migration");
  }
  if ((mask & bit::kPathMigState) == 0) return {};
  const auto state = number_of(attr.path_mig_state);
  if (state == IBV_MIG_MIGRATED) return {};
  if (state == IBV_MIG_REARM || state == IBV_MIG_ARMED) {
    return queue::error(EINVAL, "path_mig_state can only be IBV_MIG_MIGRATED: RoCE has no alternate path to arm");
  }
  return queue::error(EINVAL, "path_mig_state is no value of enum ibv_mig_state");
}

// As the kernel and mlx5 do: what is above 24 bits is cut off, with a word about it.
std::uint32_t low_24_bits(const char* name, std::uint32_t value) {
  constexpr std::uint32_t kMask = 0xffffff;
  if (value > kMask)
    log(NICLESS_LOG_WARN, std::string("ibv_modify_qp: ") + name + " has 24 bits, those above are cut off");
  return value & kMask;
}

queue::Result<void> check_device(const Device& device, const ibv_qp_attr& attr, std::uint32_t mask) {
  if (const auto state = number_of(attr.qp_state); (mask & bit::kState) != 0 && state > IBV_QPS_ERR) {
    return queue::error(EINVAL, "qp_state is " + std::to_string(state) + ", no value of enum ibv_qp_state");
  }
  if ((mask & bit::kPort) != 0 && attr.port_num != 1) {
    return queue::error(EINVAL, "port_num is " + std::to_string(attr.port_num) + ", the device has port 1 only");
  }
  if ((mask & bit::kPkeyIndex) != 0 && attr.pkey_index != 0) {
    return queue::error(EINVAL,
                        "pkey_index is " + std::to_string(attr.pkey_index) + ", the P_Key table has index 0 only");
  }
  if ((mask & bit::kPathMtu) == 0) return {};
  if (const auto mtu = number_of(attr.path_mtu); mtu < IBV_MTU_256 || mtu > IBV_MTU_4096) {
    return queue::error(EINVAL, "path_mtu is no value of enum ibv_mtu");
  }
  if (mtu_bytes(attr.path_mtu) > device.mtu_bytes) {
    return queue::error(EINVAL, "path_mtu is " + std::to_string(mtu_bytes(attr.path_mtu)) +
                                    " bytes, the port's active_mtu is " + std::to_string(device.mtu_bytes));
  }
  return {};
}

}  // namespace

queue::Result<wire::QpAttributes> attributes_of(const Device& device, const ibv_qp_attr& attr, std::uint32_t mask) {
  if (auto checked = check_device(device, attr, mask); !checked) return checked.error();
  if (auto checked = check_migration(attr, mask); !checked) return checked.error();
  wire::QpAttributes to;
  if ((mask & bit::kAv) != 0) {
    auto path = path_of(device, attr.ah_attr);
    if (!path) return path.error();
    to.path = *path;
  }
  // Without its bit a field is not looked at; it may hold anything.
  if ((mask & bit::kState) != 0) to.state = state_of(number_of(attr.qp_state));
  if ((mask & bit::kCurState) != 0) to.current_state = state_of(number_of(attr.cur_qp_state));
  if ((mask & bit::kAccessFlags) != 0) to.access = static_cast<std::uint32_t>(attr.qp_access_flags);
  if ((mask & bit::kPathMtu) != 0) to.path_mtu = mtu_bytes(attr.path_mtu);
  if ((mask & bit::kQkey) != 0) to.qkey = attr.qkey;
  if ((mask & bit::kRqPsn) != 0) to.rq_psn = low_24_bits("rq_psn", attr.rq_psn);
  if ((mask & bit::kSqPsn) != 0) to.sq_psn = low_24_bits("sq_psn", attr.sq_psn);
  if ((mask & bit::kDestQpn) != 0) to.dest_qpn = queue::Qpn(low_24_bits("dest_qp_num", attr.dest_qp_num));
  if ((mask & bit::kEnSqdAsyncNotify) != 0) to.sqd_async_notify = attr.en_sqd_async_notify != 0;
  if ((mask & bit::kTimeout) != 0) to.timeout = attr.timeout;
  if ((mask & bit::kRetryCnt) != 0) to.retry_cnt = attr.retry_cnt;
  if ((mask & bit::kRnrRetry) != 0) to.rnr_retry = attr.rnr_retry;
  if ((mask & bit::kMinRnrTimer) != 0) to.min_rnr_timer = attr.min_rnr_timer;
  if ((mask & bit::kMaxQpRdAtomic) != 0) to.max_rd_atomic = attr.max_rd_atomic;
  if ((mask & bit::kMaxDestRdAtomic) != 0) to.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  return to;
}

void remember(const ibv_qp_attr& from, std::uint32_t mask, ibv_qp_attr& to) {
  if ((mask & bit::kPkeyIndex) != 0) to.pkey_index = from.pkey_index;
  if ((mask & bit::kPort) != 0) to.port_num = from.port_num;
  if ((mask & bit::kAv) != 0) to.ah_attr = from.ah_attr;
  if ((mask & bit::kPathMigState) != 0) to.path_mig_state = from.path_mig_state;
  if ((mask & bit::kEnSqdAsyncNotify) != 0) to.en_sqd_async_notify = from.en_sqd_async_notify;
}

void refresh(const wire::QpAttributes& from, ibv_qp_attr& to) {
  to.qp_state = to.cur_qp_state = static_cast<ibv_qp_state>(from.state);
  to.qp_access_flags = from.access;
  to.path_mtu = mtu_code(from.path_mtu);
  to.qkey = from.qkey;
  to.rq_psn = from.rq_psn;
  to.sq_psn = from.sq_psn;
  to.dest_qp_num = from.dest_qpn.value();
  to.timeout = from.timeout;
  to.retry_cnt = from.retry_cnt;
  to.rnr_retry = from.rnr_retry;
  to.min_rnr_timer = from.min_rnr_timer;
  to.max_rd_atomic = from.max_rd_atomic;
  to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  to.sq_draining = from.sq_draining ? 1 : 0;
}

}  // namespace nicless::provider
