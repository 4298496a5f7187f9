// SPDX-License-Identifier: MIT
// The send queue of one queue pair: a ring of owned work requests with sequence numbers that never wrap.
//
//      retired <= seq < posted       still the transport's: to be sent, or sent and not acknowledged
//
// The requester reads any of them by sequence number and retires them strictly in order; retiring is what makes a
// completion. Port-bound: the caller holds the port's lock. See ibv_post_send(3); IBTA 10.8.
#pragma once

#include <cstdint>
#include <memory>

#include "queue/completion.h"
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

  // Copies the request in. EINVAL: more SGEs than the queue takes, inline data too long, message too long. ENOMEM: no
  // room; the sentence says how many of the work requests in the queue are unsignalled.
  Result<void> post(const Wqe& request);

  std::uint64_t posted() const { return posted_; }
  std::uint64_t retired() const { return retired_; }
  bool empty() const { return posted_ == retired_; }
  const Wqe& at(std::uint64_t seq) const;  // retired() <= seq < posted()

  // Retires the oldest work request. A success makes a completion only if the request was signalled; any other status
  // always does. byte_len is what a read or an atomic brought in.
  void retire(WcStatus status, std::uint32_t byte_len = 0, std::uint32_t vendor_err = 0);
  void flush();  // retires all that is left with WrFlushErr
  void reset();  // forgets everything without completions and purges the CQ: a queue pair that went to RESET

 private:
  struct Slot;
  Limits limits_;
  CompletionQueue& cq_;
  Qpn qpn_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Sge[]> sges_;
  std::unique_ptr<std::byte[]> inline_data_;
  std::uint64_t posted_ = 0;
  std::uint64_t retired_ = 0;
  std::uint32_t uncovered_ = 0;  // retired without a completion since the last one that made one
  Credit credit_;
};

}  // namespace nicless::queue
