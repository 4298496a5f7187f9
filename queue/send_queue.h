// SPDX-License-Identifier: MIT
// The send queue of one queue pair: a ring of owned work requests with sequence numbers that never wrap.
//
//      retired <= seq < posted       still the transport's: to be sent, or sent and not acknowledged
//
// The requester reads any of them by sequence number and retires them strictly in order; retiring is what makes a
// completion. Room comes back later, when the program polls the completion that covers the request (see Credit): a
// queue full of unsignalled requests stays full, as on hardware. Port-bound: the caller holds the port's lock. See
// ibv_post_send(3); IBTA 10.8.
#pragma once

#include <cstdint>
#include <span>

#include "queue/completion.h"
#include "queue/lazy_array.h"
#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::queue {

class CompletionQueue;

class SendQueue {
 public:
  struct Limits {
    std::uint32_t depth = 0;       // work requests
    std::uint32_t sge_max = 0;     // entries in one list
    std::uint32_t inline_max = 0;  // bytes of inline data
    bool signal_all = false;       // ibv_qp_init_attr.sq_sig_all
  };

  SendQueue(Limits limits, CompletionQueue& cq, Qpn qpn);
  ~SendQueue();  // purges this queue's completions from the CQ

  const Limits& limits() const { return limits_; }
  CompletionQueue& cq() const { return cq_; }

  // Copies the request in, its list and inline data included, and counts its length. EINVAL: message too long.
  // ENOMEM, as mlx5 says it: more SGEs than the queue takes, inline data too long, no room; then the sentence says how
  // many of the work requests in the queue are unsignalled.
  Result<void> post(const Wqe& request);
  // All of them or, with the error of the first that post() would refuse, none.
  Result<void> post_all(std::span<const Wqe> requests);

  std::uint64_t posted() const { return posted_; }
  std::uint64_t retired() const { return retired_; }
  bool empty() const { return posted_ == retired_; }
  const Wqe& at(std::uint64_t seq) const;  // retired() <= seq < posted()
  // A request that the transport has not begun yet is to fail: see Wqe::forced_status.
  void force_status(std::uint64_t seq, WcStatus status);

  // Retires the oldest work request. A success makes a completion only if the request was signalled; any other status
  // always does. byte_len is what a read or an atomic brought in.
  void retire(WcStatus status, std::uint32_t byte_len = 0, std::uint32_t vendor_err = 0);
  void flush();  // retires all that is left with WrFlushErr
  void reset();  // forgets everything without completions and purges the CQ: a queue pair that went to RESET

 private:
  struct Slot {
    Wqe wqe;
    std::uint64_t unsignaled_before = 0;  // unsignalled requests posted before this one, ever
  };
  std::size_t index_of(std::uint64_t seq) const { return static_cast<std::size_t>(seq) & slot_mask_; }
  Result<void> check(const Wqe& request) const;
  void append(const Wqe& request);
  std::uint64_t held() const { return posted_ - credit_.released(); }
  Error no_room(std::uint64_t held) const;

  const Limits limits_;
  CompletionQueue& cq_;
  const Qpn qpn_;
  const std::size_t slot_mask_;  // slots are a power of two, at least the depth
  LazyArray<Slot> slots_;
  LazyArray<Sge> sges_;               // sge_max for each slot
  LazyArray<std::byte> inline_data_;  // inline_max for each slot
  std::uint64_t posted_ = 0;
  std::uint64_t retired_ = 0;
  std::uint64_t unsignaled_ = 0;  // posted unsignalled, ever
  std::uint32_t uncovered_ = 0;   // retired without a completion since the last one that made one
  Credit credit_;
};

}  // namespace nicless::queue
