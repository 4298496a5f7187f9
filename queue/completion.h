// SPDX-License-Identifier: MIT
// A completion as the transport makes it, before ibv_poll_cq turns it into an ibv_wc. Enumerators have the numbers of
// ibv_wc_status and ibv_wc_opcode (checked in completion_queue.cpp).
#pragma once

#include <atomic>
#include <cstdint>

#include "queue/types.h"

namespace nicless::queue {

enum class WcStatus : std::uint8_t {
  Success = 0,
  LocLenErr = 1,
  LocQpOpErr = 2,
  LocProtErr = 4,
  WrFlushErr = 5,
  MwBindErr = 6,
  BadRespErr = 7,
  LocAccessErr = 8,
  RemInvReqErr = 9,
  RemAccessErr = 10,
  RemOpErr = 11,
  RetryExcErr = 12,
  RnrRetryExcErr = 13,
  RemInvRdReqErr = 15,
  RemAbortErr = 16,
  FatalErr = 19,
  GeneralErr = 21,
};

enum class WcOpcode : std::uint8_t {
  Send = 0,
  RdmaWrite = 1,
  RdmaRead = 2,
  CompSwap = 3,
  FetchAdd = 4,
  BindMw = 5,
  LocalInv = 6,
  Recv = 128,
  RecvRdmaWithImm = 129,
};

inline constexpr std::uint8_t kWcGrh = 1;
inline constexpr std::uint8_t kWcWithImm = 2;
inline constexpr std::uint8_t kWcWithInv = 8;

// Room in a send or receive queue comes back when the completion that covers a work request is polled, not when the
// transport is done with it: that is how hardware behaves, where the ring entry is the program's until it reads the
// CQE. The queue owns its Credit; completions that point at it are purged before the queue dies. Thread-safe.
class Credit {
 public:
  void release(std::uint32_t count) { released_.fetch_add(count, std::memory_order_release); }
  std::uint64_t released() const { return released_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> released_{0};
};

struct Completion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::Success;
  WcOpcode opcode = WcOpcode::Send;
  std::uint8_t flags = 0;        // kWcGrh | kWcWithImm | kWcWithInv
  bool solicited = false;        // wakes a CQ armed for solicited events only; an error always does
  std::uint32_t byte_len = 0;    // bytes received, or read; unspecified for sends
  std::uint32_t imm_or_key = 0;  // immediate data in network byte order, or the invalidated rkey
  std::uint32_t vendor_err = 0;
  Qpn qp_num{};                    // the local queue pair, also for a receive that came from an SRQ
  Qpn src_qp{};                    // UD: the sender's queue pair
  Credit* credit = nullptr;        // whose room comes back when this is polled
  std::uint32_t credit_count = 0;  // how many work requests this completion covers
  std::uint64_t stamp = 0;         // when it was made, by the clock of a CQ that stamps; nanoseconds
};

}  // namespace nicless::queue
