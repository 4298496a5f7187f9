// SPDX-License-Identifier: MIT
#include "queue/completion_queue.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace nicless::queue {
namespace {

constexpr ibv_wc_status to_verbs(WcStatus status) {
  return static_cast<ibv_wc_status>(status);
}
constexpr ibv_wc_opcode to_verbs(WcOpcode opcode) {
  return static_cast<ibv_wc_opcode>(opcode);
}

static_assert(to_verbs(WcStatus::Success) == IBV_WC_SUCCESS);
static_assert(to_verbs(WcStatus::LocLenErr) == IBV_WC_LOC_LEN_ERR);
static_assert(to_verbs(WcStatus::LocQpOpErr) == IBV_WC_LOC_QP_OP_ERR);
static_assert(to_verbs(WcStatus::LocProtErr) == IBV_WC_LOC_PROT_ERR);
static_assert(to_verbs(WcStatus::WrFlushErr) == IBV_WC_WR_FLUSH_ERR);
static_assert(to_verbs(WcStatus::MwBindErr) == IBV_WC_MW_BIND_ERR);
static_assert(to_verbs(WcStatus::BadRespErr) == IBV_WC_BAD_RESP_ERR);
static_assert(to_verbs(WcStatus::LocAccessErr) == IBV_WC_LOC_ACCESS_ERR);
static_assert(to_verbs(WcStatus::RemInvReqErr) == IBV_WC_REM_INV_REQ_ERR);
static_assert(to_verbs(WcStatus::RemAccessErr) == IBV_WC_REM_ACCESS_ERR);
static_assert(to_verbs(WcStatus::RemOpErr) == IBV_WC_REM_OP_ERR);
static_assert(to_verbs(WcStatus::RetryExcErr) == IBV_WC_RETRY_EXC_ERR);
static_assert(to_verbs(WcStatus::RnrRetryExcErr) == IBV_WC_RNR_RETRY_EXC_ERR);
static_assert(to_verbs(WcStatus::RemInvRdReqErr) == IBV_WC_REM_INV_RD_REQ_ERR);
static_assert(to_verbs(WcStatus::RemAbortErr) == IBV_WC_REM_ABORT_ERR);
static_assert(to_verbs(WcStatus::FatalErr) == IBV_WC_FATAL_ERR);
static_assert(to_verbs(WcStatus::GeneralErr) == IBV_WC_GENERAL_ERR);

static_assert(to_verbs(WcOpcode::Send) == IBV_WC_SEND);
static_assert(to_verbs(WcOpcode::RdmaWrite) == IBV_WC_RDMA_WRITE);
static_assert(to_verbs(WcOpcode::RdmaRead) == IBV_WC_RDMA_READ);
static_assert(to_verbs(WcOpcode::CompSwap) == IBV_WC_COMP_SWAP);
static_assert(to_verbs(WcOpcode::FetchAdd) == IBV_WC_FETCH_ADD);
static_assert(to_verbs(WcOpcode::BindMw) == IBV_WC_BIND_MW);
static_assert(to_verbs(WcOpcode::LocalInv) == IBV_WC_LOCAL_INV);
static_assert(to_verbs(WcOpcode::Recv) == IBV_WC_RECV);
static_assert(to_verbs(WcOpcode::RecvRdmaWithImm) == IBV_WC_RECV_RDMA_WITH_IMM);

static_assert(kWcGrh == static_cast<int>(IBV_WC_GRH));
static_assert(kWcWithImm == static_cast<int>(IBV_WC_WITH_IMM));
static_assert(kWcWithInv == static_cast<int>(IBV_WC_WITH_INV));

static_assert(static_cast<int>(AsyncType::CqErr) == IBV_EVENT_CQ_ERR);
static_assert(static_cast<int>(AsyncType::QpFatal) == IBV_EVENT_QP_FATAL);
static_assert(static_cast<int>(AsyncType::QpReqErr) == IBV_EVENT_QP_REQ_ERR);
static_assert(static_cast<int>(AsyncType::QpAccessErr) == IBV_EVENT_QP_ACCESS_ERR);
static_assert(static_cast<int>(AsyncType::CommEst) == IBV_EVENT_COMM_EST);
static_assert(static_cast<int>(AsyncType::SqDrained) == IBV_EVENT_SQ_DRAINED);
static_assert(static_cast<int>(AsyncType::PortActive) == IBV_EVENT_PORT_ACTIVE);
static_assert(static_cast<int>(AsyncType::PortErr) == IBV_EVENT_PORT_ERR);
static_assert(static_cast<int>(AsyncType::SrqErr) == IBV_EVENT_SRQ_ERR);
static_assert(static_cast<int>(AsyncType::SrqLimitReached) == IBV_EVENT_SRQ_LIMIT_REACHED);
static_assert(static_cast<int>(AsyncType::QpLastWqeReached) == IBV_EVENT_QP_LAST_WQE_REACHED);

// Every member is written: the program's array is not cleared before. There are no P_Keys but one, and Ethernet has no
// LIDs or service levels.
void fill(ibv_wc& wc, const Completion& completion) {
  wc = {};
  wc.wr_id = completion.wr_id;
  wc.status = to_verbs(completion.status);
  wc.opcode = to_verbs(completion.opcode);
  wc.vendor_err = completion.vendor_err;
  wc.byte_len = completion.byte_len;
  wc.imm_data = completion.imm_or_key;  // shares its place with invalidated_rkey
  wc.qp_num = completion.qp_num.value();
  wc.src_qp = completion.src_qp.value();
  wc.wc_flags = completion.flags;
}

void give_room_back(const Completion& completion) {
  if (completion.credit != nullptr) completion.credit->release(completion.credit_count);
}

}  // namespace

CompletionQueue::CompletionQueue(std::uint32_t capacity, CompletionChannel* channel, AsyncEvents& async_events,
                                 void* handle, const CqOptions& options)
    : channel_(channel), async_events_(async_events), handle_(handle), options_(options), capacity_(capacity) {}

CompletionQueue::~CompletionQueue() {
  if (channel_ != nullptr) {
    channel_->erase_if([this](const CompletionEvent& event) { return event.handle == handle_; });
  }
  async_events_.erase_if([this](const AsyncEvent& event) { return event.handle == handle_; });
}

void CompletionQueue::push(const Completion& completion) {
  MutexLock lock(mutex_);
  if (is_overrun() || !make_room()) {
    losers_.insert(completion.qp_num);
    return;
  }
  if (options_.clock != nullptr) {
    Completion stamped = completion;
    stamped.stamp = options_.clock();
    completions_.push_back(stamped);
  } else {
    completions_.push_back(completion);
  }
  update_count();
  raise_if_armed(completion);
}

bool CompletionQueue::has_lost_completion_of(Qpn qpn) const {
  if (!is_overrun()) return false;
  MutexLock lock(mutex_);
  return losers_.contains(qpn);
}

void CompletionQueue::forget_lost_completions_of(Qpn qpn) {
  MutexLock lock(mutex_);
  losers_.erase(qpn);
}

bool CompletionQueue::make_room() {
  if (completions_.size() < capacity_) return true;
  if (options_.ignores_overrun) {
    pop_front();
    return true;
  }
  overrun_.store(true, std::memory_order_relaxed);
  async_events_.push({.type = AsyncType::CqErr, .handle = handle_});
  return false;
}

void CompletionQueue::pop_front() {
  give_room_back(completions_.front());
  completions_.pop_front();
  update_count();
}

int CompletionQueue::poll(std::span<ibv_wc> out) {
  if (empty() && !is_overrun()) return 0;
  MutexLock lock(mutex_);
  if (is_overrun()) return -1;
  const std::size_t count = std::min(out.size(), completions_.size());
  for (std::size_t i = 0; i < count; ++i) {
    fill(out[i], completions_.front());
    pop_front();
  }
  return static_cast<int>(count);
}

int CompletionQueue::poll(Completion& out) {
  if (empty() && !is_overrun()) return 0;
  MutexLock lock(mutex_);
  if (is_overrun()) return -1;
  if (completions_.empty()) return 0;
  out = completions_.front();
  pop_front();
  return 1;
}

void CompletionQueue::arm(bool solicited_only) {
  MutexLock lock(mutex_);
  if (!solicited_only) {
    armed_ = Armed::All;
  } else if (armed_ == Armed::No) {
    armed_ = Armed::Solicited;
  }
}

// An event that waits under the old rule does not wait for the new one.
void CompletionQueue::moderate(const Moderation& moderation) {
  MutexLock lock(mutex_);
  moderation_ = moderation;
  if (due_) raise();
}

std::optional<Instant> CompletionQueue::raise_if_due(Instant now) {
  MutexLock lock(mutex_);
  if (due_ && *due_ <= now) raise();
  return due_;
}

std::uint32_t CompletionQueue::capacity() const {
  MutexLock lock(mutex_);
  return capacity_;
}

Result<void> CompletionQueue::resize(std::uint32_t capacity) {
  if (capacity == 0 || capacity > kCqeMax) {
    return error(EINVAL, "a completion queue takes 1 to " + std::to_string(kCqeMax) + " entries, not " +
                             std::to_string(capacity));
  }
  MutexLock lock(mutex_);
  if (capacity < completions_.size()) {
    return error(EINVAL, "what waits in the queue, " + std::to_string(completions_.size()) +
                             " in all, does not fit a capacity of " + std::to_string(capacity) + "; poll it first");
  }
  capacity_ = capacity;
  return {};
}

void CompletionQueue::purge(const Credit& credit) {
  MutexLock lock(mutex_);
  completions_.erase_if([&](const Completion& completion) { return completion.credit == &credit; });
  update_count();
}

void CompletionQueue::purge(Qpn qpn) {
  MutexLock lock(mutex_);
  losers_.erase(qpn);
  completions_.erase_if([&](const Completion& completion) {
    if (completion.qp_num != qpn) return false;
    give_room_back(completion);
    return true;
  });
  update_count();
}

void CompletionQueue::raise_if_armed(const Completion& completion) {
  const bool wakes_solicited = completion.solicited || completion.status != WcStatus::Success;
  if (armed_ == Armed::No || (armed_ == Armed::Solicited && !wakes_solicited)) return;
  if (!may_wait()) raise();
}

bool CompletionQueue::may_wait() {
  if (moderation_.count <= 1 || moderation_.period <= Duration::zero()) return false;
  if (++waiting_ >= moderation_.count) return false;
  if (due_) return true;
  due_ = moderation_.now() + moderation_.period;
  moderation_.wake();
  return true;
}

void CompletionQueue::raise() {
  armed_ = Armed::No;
  waiting_ = 0;
  due_.reset();
  if (channel_ != nullptr) channel_->push({.handle = handle_});
}

}  // namespace nicless::queue
