// SPDX-License-Identifier: MIT
// Extended completion queues: ibv_create_cq_ex(3), ibv_modify_cq(3). The functions behind the slots of an ibv_cq_ex; a
// program reads what it did not ask for in wc_flags as well, where hardware has a null pointer.
#include <cerrno>
#include <string>

#include "provider/cq.h"
#include "provider/errno_shapes.h"
#include "provider/objects.h"
#include "provider/rt_values.h"
#include "wire/io/clock.h"

namespace nicless::provider {
namespace {

constexpr std::uint64_t kStampFlags =
    std::uint64_t{IBV_WC_EX_WITH_COMPLETION_TIMESTAMP} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
// Of what our packets never carry, the fields read as 0: VLANs, flow tags, tags to match.
constexpr std::uint64_t kWcFlags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_CVLAN |
                                   IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO | kStampFlags;

Cq& cq_of(ibv_cq_ex* cq) {
  return *reinterpret_cast<Cq*>(cq);
}
const queue::Completion& current(ibv_cq_ex* cq) {
  return cq_of(cq).current;
}

// Makes what was found the current completion.
void stand_at_current(Cq& cq) {
  const queue::Completion& found = cq.current;
  cq.verbs.wr_id = found.wr_id;
  cq.verbs.status = static_cast<ibv_wc_status>(found.status);
  if (found.status != queue::WcStatus::Success) cq.context->runtime.log_reasons(found.qp_num);
}

int errno_of(int found) {
  return found > 0 ? 0 : found == 0 ? ENOENT : EIO;
}

int start(Cq& cq) {
  const int found = poll_one(cq, cq.current);
  if (found <= 0) return errno_of(found);
  if (cq.tells_wall_clock) cq.to_wall_clock = wall_clock_offset();
  stand_at_current(cq);
  return 0;
}

// A batch is one thread's: until ibv_end_poll others wait here, as on hardware.
int start_poll(ibv_cq_ex* verbs, ibv_poll_cq_attr* attr) NO_THREAD_SAFETY_ANALYSIS {
  Cq& cq = cq_of(verbs);
  if (cq.context->generation != process_generation()) return EIO;
  if (attr != nullptr && attr->comp_mask != 0) {
    return report("ibv_start_poll", {EINVAL, "attr->comp_mask must be 0"});
  }
  if (cq.is_single_threaded) return start(cq);
  cq.polling.lock();
  const int e = start(cq);
  if (e != 0) cq.polling.unlock();
  return e;
}

int next_poll(ibv_cq_ex* verbs) {
  Cq& cq = cq_of(verbs);
  const int found = cq.queue.poll(cq.current);
  if (found > 0) stand_at_current(cq);
  return errno_of(found);
}

void end_poll(ibv_cq_ex* verbs) NO_THREAD_SAFETY_ANALYSIS {
  Cq& cq = cq_of(verbs);
  if (!cq.is_single_threaded) cq.polling.unlock();
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return static_cast<ibv_wc_opcode>(current(cq).opcode);
}
std::uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return current(cq).vendor_err;
}
std::uint32_t read_byte_len(ibv_cq_ex* cq) {
  return current(cq).byte_len;
}
// Also behind ibv_wc_read_invalidated_rkey: the two share a slot, as they share a place in ibv_wc.
__be32 read_imm_data(ibv_cq_ex* cq) {
  return current(cq).imm_or_key;
}
std::uint32_t read_qp_num(ibv_cq_ex* cq) {
  return current(cq).qp_num.value();
}
std::uint32_t read_src_qp(ibv_cq_ex* cq) {
  return current(cq).src_qp.value();
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return current(cq).flags;
}
// Ethernet has no LIDs and no service levels.
std::uint32_t read_slid(ibv_cq_ex*) {
  return 0;
}
std::uint8_t read_sl(ibv_cq_ex*) {
  return 0;
}
std::uint8_t read_dlid_path_bits(ibv_cq_ex*) {
  return 0;
}
std::uint64_t read_completion_ts(ibv_cq_ex* cq) {
  return current(cq).stamp;
}
std::uint64_t read_completion_wallclock_ns(ibv_cq_ex* cq) {
  return current(cq).stamp + cq_of(cq).to_wall_clock;
}
std::uint16_t read_cvlan(ibv_cq_ex*) {
  return 0;
}
std::uint32_t read_flow_tag(ibv_cq_ex*) {
  return 0;
}
void read_tm_info(ibv_cq_ex*, ibv_wc_tm_info* info) {
  *info = {};
}

void fill_slots(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_byte_len = read_byte_len;
  cq.read_imm_data = read_imm_data;
  cq.read_qp_num = read_qp_num;
  cq.read_src_qp = read_src_qp;
  cq.read_wc_flags = read_wc_flags;
  cq.read_slid = read_slid;
  cq.read_sl = read_sl;
  cq.read_dlid_path_bits = read_dlid_path_bits;
  cq.read_completion_ts = read_completion_ts;
  cq.read_cvlan = read_cvlan;
  cq.read_flow_tag = read_flow_tag;
  cq.read_tm_info = read_tm_info;
  cq.read_completion_wallclock_ns = read_completion_wallclock_ns;
}

// There is a runtime: a CQ has been made.
void wake_progress_thread() {
  if (const auto runtime = Runtime::current()) (*runtime)->progress().wake();
}

Result<void> check(const ibv_cq_init_attr_ex& attr) {
  constexpr std::uint32_t kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((attr.comp_mask & ~kMasks) != 0) return queue::error(EINVAL, "comp_mask has bits beyond FLAGS and PD");
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (attr.flags & ~kFlags) != 0) {
    return queue::error(EINVAL, "flags has bits beyond SINGLE_THREADED and IGNORE_OVERRUN");
  }
  if ((attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 &&
      (attr.parent_domain == nullptr || pd_of(attr.parent_domain).protection == nullptr)) {
    return queue::error(EINVAL, "parent_domain is none: ibv_alloc_parent_domain makes one");
  }
  if ((attr.wc_flags & ~kWcFlags) != 0) {
    return queue::error(EOPNOTSUPP, "wc_flags asks for fields that completions do not have here");
  }
  return {};
}

}  // namespace

Result<ibv_cq_ex*> create_cq_ex(ibv_context* verbs, const ibv_cq_init_attr_ex* attr) {
  if (auto checked = check(*attr); !checked) return checked.error();
  const std::uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  queue::CqOptions options;
  if ((attr->wc_flags & kStampFlags) != 0) options.clock = device_clock;
  options.ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  auto made = make_cq(verbs, {attr->cqe, attr->cq_context, attr->channel, attr->comp_vector, options});
  if (!made) return made.error();
  Cq& cq = **made;
  cq.is_single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  cq.tells_wall_clock = (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) cq.parent_domain.emplace(pd_of(attr->parent_domain));
  fill_slots(cq.verbs);
  return &made->release()->verbs;
}

// As mlx5 has it: up to 65535 completions and 4095 microseconds; a count of 0 or 1, or a period of 0, is none.
Result<void> modify_cq(ibv_cq* verbs, const ibv_modify_cq_attr* attr) {
  Cq& cq = provider::cq_of(verbs);
  if (auto alive = cq.context.check_alive(); !alive) return alive;
  if (attr->attr_mask == 0) return queue::error(EINVAL, "attr_mask is 0: nothing to modify");
  if ((attr->attr_mask & ~std::uint32_t{IBV_CQ_ATTR_MODERATE}) != 0) {
    return queue::error(EINVAL, "attr_mask has bits beyond IBV_CQ_ATTR_MODERATE");
  }
  if (attr->moderate.cq_period > kModerationPeriodMax) {
    return queue::error(EINVAL, "cq_period is " + std::to_string(attr->moderate.cq_period) + " us, the most is " +
                                    std::to_string(kModerationPeriodMax));
  }
  Runtime& runtime = cq.context->runtime;
  runtime.add_moderated(cq.queue);
  cq.queue.moderate(
      {attr->moderate.cq_count, std::chrono::microseconds(attr->moderate.cq_period), wire::now, wake_progress_thread});
  return {};
}

}  // namespace nicless::provider
