// SPDX-License-Identifier: MIT
#include "provider/wr_builder.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "provider/ah.h"
#include "provider/errno_shapes.h"
#include "provider/mw.h"
#include "provider/objects.h"
#include "provider/post.h"

namespace nicless::provider {
namespace {

using queue::SendOpcode;

WrBuilder& builder_of(ibv_qp_ex* qp) {
  return *qp_of(&qp->qp_base).builder;
}

// Building happens through functions that return nothing: what goes wrong is kept until ibv_wr_complete.
template <typename F>
void build(ibv_qp_ex* qp, F&& f) noexcept NO_THREAD_SAFETY_ANALYSIS {
  WrBuilder& builder = builder_of(qp);
  try {
    f(builder);
  } catch (const std::bad_alloc&) {
    builder.refuse({ENOMEM, {}});
  }
}

void begin(ibv_qp_ex* qp, SendOpcode opcode, std::uint32_t imm = 0) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS {
    builder.begin(*qp, opcode);
    builder.current().imm_or_key = imm;
  });
}

void begin_remote(ibv_qp_ex* qp, SendOpcode opcode, std::uint32_t rkey, std::uint64_t remote_addr,
                  std::uint32_t imm = 0) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS {
    builder.begin(*qp, opcode);
    builder.current().rkey = queue::RKey(rkey);
    builder.current().remote_addr = remote_addr;
    builder.current().imm_or_key = imm;
  });
}

void refuse(ibv_qp_ex* qp, int errno_value, const char* why) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS { builder.refuse({errno_value, why}); });
}
void refuse(ibv_qp_ex* qp, const char* why) {
  refuse(qp, EOPNOTSUPP, why);
}

void wr_atomic_cmp_swp(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap) {
  begin_remote(qp, SendOpcode::CompareSwap, rkey, remote_addr);
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS {
    builder.current().compare_add = compare;
    builder.current().swap = swap;
  });
}
void wr_atomic_fetch_add(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t add) {
  begin_remote(qp, SendOpcode::FetchAdd, rkey, remote_addr);
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS { builder.current().compare_add = add; });
}
void wr_rdma_read(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  begin_remote(qp, SendOpcode::Read, rkey, remote_addr);
}
void wr_rdma_write(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  begin_remote(qp, SendOpcode::Write, rkey, remote_addr);
}
void wr_rdma_write_imm(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, __be32 imm) {
  begin_remote(qp, SendOpcode::WriteImm, rkey, remote_addr, imm);
}
void wr_send(ibv_qp_ex* qp) {
  begin(qp, SendOpcode::Send);
}
void wr_send_imm(ibv_qp_ex* qp, __be32 imm) {
  begin(qp, SendOpcode::SendImm, imm);
}
void wr_send_inv(ibv_qp_ex* qp, uint32_t invalidate_rkey) {
  begin(qp, SendOpcode::SendInv, invalidate_rkey);
}
void wr_send_tso(ibv_qp_ex* qp, void*, uint16_t, uint16_t) {
  refuse(qp, "TSO is not supported");
}
void wr_bind_mw(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS {
    builder.begin(*qp, SendOpcode::BindMw);
    const auto binding = binding_from(mw, rkey, *info);
    binding ? binding->put_into(builder.current()) : builder.refuse(binding.error());
  });
}
void wr_local_inv(ibv_qp_ex* qp, uint32_t invalidate_rkey) {
  begin(qp, SendOpcode::LocalInv, invalidate_rkey);
}
void wr_atomic_write(ibv_qp_ex* qp, uint32_t, uint64_t, const void*) {
  refuse(qp, "ATOMIC_WRITE is not supported");
}
void wr_flush(ibv_qp_ex* qp, uint32_t, uint64_t, size_t, uint8_t, uint8_t) {
  refuse(qp, "RDMA FLUSH is not supported");
}
void wr_set_xrc_srqn(ibv_qp_ex* qp, uint32_t remote_srqn) {
  constexpr std::uint32_t kSrqnMask = 0xffffff;  // the rest is reserved in a packet's header
  if (qp->qp_base.qp_type != IBV_QPT_XRC_SEND)
    return refuse(qp, EINVAL, "only XRC initiators name an SRQ of the peer's");
  build(qp, [&](WrBuilder& builder)
                NO_THREAD_SAFETY_ANALYSIS { builder.current().remote_srqn = queue::Srqn(remote_srqn & kSrqnMask); });
}
void wr_set_ud_addr(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  build(qp, [&](WrBuilder& builder)
                NO_THREAD_SAFETY_ANALYSIS { builder.current().datagram = datagram_to(*ah, remote_qpn, remote_qkey); });
}
void wr_set_sge(ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length) {
  const ibv_sge sge{addr, length, lkey};
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS { builder.add_list(std::span(&sge, 1)); });
}
void wr_set_sge_list(ibv_qp_ex* qp, size_t count, const ibv_sge* list) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS { builder.add_list(std::span(list, count)); });
}
void wr_set_inline_data(ibv_qp_ex* qp, void* data, size_t length) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS { builder.add_inline(data, length); });
}
void wr_set_inline_data_list(ibv_qp_ex* qp, size_t count, const ibv_data_buf* list) {
  build(qp, [&](WrBuilder& builder) NO_THREAD_SAFETY_ANALYSIS {
    for (size_t i = 0; i < count; ++i) builder.add_inline(list[i].addr, list[i].length);
  });
}

void wr_start(ibv_qp_ex* qp) NO_THREAD_SAFETY_ANALYSIS {
  builder_of(qp).start();
}
int wr_complete(ibv_qp_ex* qp) NO_THREAD_SAFETY_ANALYSIS {
  Qp& ours = qp_of(&qp->qp_base);
  return errno_itself(Call("ibv_wr_complete", &qp->qp_base),
                      [&]() NO_THREAD_SAFETY_ANALYSIS { return ours.builder->complete(ours); });
}
void wr_abort(ibv_qp_ex* qp) NO_THREAD_SAFETY_ANALYSIS {
  builder_of(qp).abort();
}

}  // namespace

void WrBuilder::start() {
  // Only this thread can have put its own number there.
  if (builder_.load() == std::this_thread::get_id()) {
    return refuse({EINVAL, "ibv_wr_start was called again before ibv_wr_complete or ibv_wr_abort; nothing is posted"});
  }
  building_.lock();
  builder_.store(std::this_thread::get_id());
  requests_.clear();
  parts_.clear();
  sges_.clear();
  inline_data_.clear();
  refusal_ = {};
}

static_assert(IBV_QP_EX_WITH_RDMA_WRITE == 1 << IBV_WR_RDMA_WRITE &&
              IBV_QP_EX_WITH_SEND_WITH_INV == 1 << IBV_WR_SEND_WITH_INV);

void WrBuilder::begin(const ibv_qp_ex& qp, SendOpcode opcode) {
  // Both enums count in the same order. On hardware the function would not even be there.
  if ((send_ops_flags_ >> static_cast<unsigned>(opcode) & 1) == 0) {
    refuse({EINVAL, std::string(to_string(opcode)) + " is not among the send_ops_flags of the queue pair"});
  }
  parts_.push_back({sges_.size(), inline_data_.size()});
  queue::Wqe& wqe = requests_.emplace_back();
  wqe.wr_id = qp.wr_id;
  wqe.opcode = opcode;
  wqe.signaled = (qp.wr_flags & IBV_SEND_SIGNALED) != 0;
  wqe.solicited = (qp.wr_flags & IBV_SEND_SOLICITED) != 0;
  wqe.fence = (qp.wr_flags & IBV_SEND_FENCE) != 0;
}

// A setter before any work request was begun fills in one that refuse() keeps from being posted.
queue::Wqe& WrBuilder::current() {
  if (requests_.empty()) {
    refuse({EINVAL, "a setter was called before any work request was begun"});
    parts_.emplace_back();
    requests_.emplace_back();
  }
  return requests_.back();
}

void WrBuilder::add_list(std::span<const ibv_sge> list) {
  current();
  for (const ibv_sge& sge : list) sges_.push_back({sge.addr, sge.length, queue::LKey(sge.lkey)});
}

void WrBuilder::add_inline(const void* data, std::size_t length) {
  current().has_inline_data = true;
  const auto* bytes = static_cast<const std::byte*>(data);
  inline_data_.insert(inline_data_.end(), bytes, bytes + length);
}

void WrBuilder::refuse(queue::Error error) {
  if (refusal_.errno_value == 0) refusal_ = std::move(error);
}

void WrBuilder::abort() {
  if (builder_.exchange({}) != std::thread::id()) building_.unlock();
}

queue::Result<void> WrBuilder::complete(Qp& qp) {
  if (builder_.load() == std::thread::id()) {
    return queue::error(EINVAL, "there is nothing to complete: ibv_wr_start comes first");
  }
  const std::lock_guard unlocked_at_the_end(building_, std::adopt_lock);
  builder_.store({});
  attach_parts();
  if (refusal_.errno_value != 0) return refusal_;
  return post_built(qp, requests_);
}

// Only now do the stores stay where they are.
void WrBuilder::attach_parts() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Parts end = i + 1 < parts_.size() ? parts_[i + 1] : Parts{sges_.size(), inline_data_.size()};
    requests_[i].sges = std::span(sges_).subspan(parts_[i].sges, end.sges - parts_[i].sges);
    requests_[i].inline_data =
        std::span(inline_data_).subspan(parts_[i].inline_data, end.inline_data - parts_[i].inline_data);
  }
}

queue::Result<void> check_send_ops(std::uint64_t send_ops_flags) {
  constexpr std::uint64_t kOurs = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                  IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                                  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                  IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
  if ((send_ops_flags & ~kOurs) == 0) return {};
  return queue::error(EOPNOTSUPP,
                      "of send_ops_flags, all but IBV_QP_EX_WITH_TSO and those newer than release 44 are supported");
}

void install_builder(Qp& qp, std::uint64_t send_ops_flags) {
  qp.builder = std::make_unique<WrBuilder>(send_ops_flags);
  ibv_qp_ex& slots = qp.verbs;
  slots.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
  slots.wr_atomic_fetch_add = wr_atomic_fetch_add;
  slots.wr_bind_mw = wr_bind_mw;
  slots.wr_local_inv = wr_local_inv;
  slots.wr_rdma_read = wr_rdma_read;
  slots.wr_rdma_write = wr_rdma_write;
  slots.wr_rdma_write_imm = wr_rdma_write_imm;
  slots.wr_send = wr_send;
  slots.wr_send_imm = wr_send_imm;
  slots.wr_send_inv = wr_send_inv;
  slots.wr_send_tso = wr_send_tso;
  slots.wr_set_ud_addr = wr_set_ud_addr;
  slots.wr_set_xrc_srqn = wr_set_xrc_srqn;
  slots.wr_set_inline_data = wr_set_inline_data;
  slots.wr_set_inline_data_list = wr_set_inline_data_list;
  slots.wr_set_sge = wr_set_sge;
  slots.wr_set_sge_list = wr_set_sge_list;
  slots.wr_start = wr_start;
  slots.wr_complete = wr_complete;
  slots.wr_abort = wr_abort;
  slots.wr_atomic_write = wr_atomic_write;
  qp.wr_flush = wr_flush;
}

Result<ibv_qp_ex*> extended_qp(ibv_qp* verbs) {
  Qp& qp = qp_of(verbs);
  if (qp.builder != nullptr) return &qp.verbs;
  return queue::error(EOPNOTSUPP, "this queue pair was not created with send_ops_flags (ibv_create_qp_ex)");
}

}  // namespace nicless::provider
