// SPDX-License-Identifier: MIT
#include "queue/send_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>

#include "queue/completion_queue.h"

namespace nicless::queue {
namespace {

WcOpcode completion_opcode(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::Write:
    case SendOpcode::WriteImm:
      return WcOpcode::RdmaWrite;
    case SendOpcode::Send:
    case SendOpcode::SendImm:
    case SendOpcode::SendInv:
      return WcOpcode::Send;
    case SendOpcode::Read:
      return WcOpcode::RdmaRead;
    case SendOpcode::CompareSwap:
      return WcOpcode::CompSwap;
    case SendOpcode::FetchAdd:
      return WcOpcode::FetchAdd;
    case SendOpcode::LocalInv:
      return WcOpcode::LocalInv;
    case SendOpcode::BindMw:
      return WcOpcode::BindMw;
  }
  return WcOpcode::Send;
}

std::uint64_t message_length(const Wqe& request) {
  if (request.has_inline_data) return request.inline_data.size();
  std::uint64_t length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  return length;
}

}  // namespace

SendQueue::SendQueue(Limits limits, CompletionQueue& cq, Qpn qpn)
    : limits_(limits),
      cq_(cq),
      qpn_(qpn),
      slot_mask_(std::bit_ceil(std::size_t{limits.depth}) - 1),
      slots_(slot_mask_ + 1),
      sges_((slot_mask_ + 1) * limits.sge_max),
      inline_data_((slot_mask_ + 1) * limits.inline_max) {
  NICLESS_CHECK(limits.depth <= kQueueDepthMax && limits.sge_max <= kSgeMax && limits.inline_max <= kInlineBytesMax);
}

SendQueue::~SendQueue() {
  cq_.purge(credit_);
}

Result<void> SendQueue::post(const Wqe& request) {
  return post_all(std::span(&request, 1));
}

Result<void> SendQueue::post_all(std::span<const Wqe> requests) {
  for (const Wqe& request : requests) {
    if (auto checked = check(request); !checked) return checked;
  }
  const std::uint64_t held_now = held();
  if (requests.size() > limits_.depth - held_now) return no_room(held_now);
  for (const Wqe& request : requests) append(request);
  return {};
}

void SendQueue::append(const Wqe& request) {
  const std::size_t index = index_of(posted_);
  Slot& slot = slots_[index];
  slot = {.wqe = request, .unsignaled_before = unsignaled_};
  Wqe& wqe = slot.wqe;
  wqe.signaled = request.signaled || limits_.signal_all;
  wqe.length = message_length(request);
  wqe.sges = {};
  wqe.inline_data = {};
  if (request.has_inline_data) {
    std::byte* data = inline_data_.at(index * limits_.inline_max);
    std::copy(request.inline_data.begin(), request.inline_data.end(), data);
    wqe.inline_data = {data, request.inline_data.size()};
  } else {
    Sge* sges = sges_.at(index * limits_.sge_max);
    std::copy(request.sges.begin(), request.sges.end(), sges);
    wqe.sges = {sges, request.sges.size()};
  }
  if (!wqe.signaled) ++unsignaled_;
  ++posted_;
}

const Wqe& SendQueue::at(std::uint64_t seq) const {
  NICLESS_DCHECK(retired_ <= seq && seq < posted_);
  return slots_[index_of(seq)].wqe;
}

void SendQueue::force_status(std::uint64_t seq, WcStatus status) {
  NICLESS_CHECK(retired_ <= seq && seq < posted_);
  slots_[index_of(seq)].wqe.forced_status = status;
}

void SendQueue::retire(WcStatus status, std::uint32_t byte_len, std::uint32_t vendor_err) {
  NICLESS_CHECK(!empty());
  const Wqe& wqe = at(retired_);
  ++uncovered_;
  if (wqe.signaled || status != WcStatus::Success) {
    cq_.push({.wr_id = wqe.wr_id,
              .status = status,
              .opcode = completion_opcode(wqe.opcode),
              .byte_len = byte_len,
              .vendor_err = vendor_err,
              .qp_num = qpn_,
              .credit = &credit_,
              .credit_count = uncovered_});
    uncovered_ = 0;
  }
  ++retired_;
}

void SendQueue::flush() {
  while (!empty()) retire(WcStatus::WrFlushErr);
}

void SendQueue::reset() {
  cq_.purge(credit_);
  retired_ = posted_;
  uncovered_ = 0;
  // Room is given back under the CQ's lock only, so none of it is on its way once the purge is done.
  credit_.release(static_cast<std::uint32_t>(posted_ - credit_.released()));
}

Result<void> SendQueue::check(const Wqe& request) const {
  if (request.has_inline_data && request.inline_data.size() > limits_.inline_max) {
    return error(ENOMEM, std::to_string(request.inline_data.size()) + " bytes of inline data, the queue pair takes " +
                             std::to_string(limits_.inline_max) + " (max_inline_data)");
  }
  if (!request.has_inline_data && request.sges.size() > limits_.sge_max) {
    return error(ENOMEM, "the list has " + std::to_string(request.sges.size()) + " SGEs, the queue pair takes " +
                             std::to_string(limits_.sge_max) + " (max_send_sge)");
  }
  if (const std::uint64_t length = message_length(request); length > kMessageBytesMax) {
    return error(EINVAL,
                 "a message of " + std::to_string(length) + " bytes, the most is " + std::to_string(kMessageBytesMax));
  }
  return {};
}

Error SendQueue::no_room(std::uint64_t held) const {
  const std::uint64_t oldest = posted_ - held;
  const std::uint64_t unsignaled = held == 0 ? 0 : unsignaled_ - slots_[index_of(oldest)].unsignaled_before;
  std::string why = "no room in the send queue: it holds " + std::to_string(held) + " work requests, " +
                    std::to_string(unsignaled) + " of them unsignalled; ";
  if (held > 0 && unsignaled == held) {
    why += "room comes back only when the completion of a signalled one is polled, so this queue stays full";
  } else {
    why += "poll the completion of a signalled one to make room";
  }
  return error(ENOMEM, std::move(why));
}

}  // namespace nicless::queue
