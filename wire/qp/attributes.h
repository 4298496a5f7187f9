// SPDX-License-Identifier: MIT
// The attributes of a queue pair as the transport needs them; the provider converts them from and to ibv_qp_attr. Masks
// and states have the numbers of ibv_qp_attr_mask and ibv_qp_state. See ibv_modify_qp(3); IBTA 10.3, 11.2.5.2.
#pragma once

#include <cstdint>

#include "queue/types.h"
#include "wire/packet/datagram.h"
#include "wire/packet/endpoint.h"

namespace nicless::wire {

enum class QpState : std::uint8_t { Reset = 0, Init = 1, Rtr = 2, Rts = 3, Sqd = 4, Sqe = 5, Err = 6 };
const char* to_string(QpState state);  // "RTR"

namespace attr_mask {
inline constexpr std::uint32_t kState = 1 << 0;
inline constexpr std::uint32_t kCurState = 1 << 1;
inline constexpr std::uint32_t kEnSqdAsyncNotify = 1 << 2;
inline constexpr std::uint32_t kAccessFlags = 1 << 3;
inline constexpr std::uint32_t kPkeyIndex = 1 << 4;
inline constexpr std::uint32_t kPort = 1 << 5;
inline constexpr std::uint32_t kQkey = 1 << 6;
inline constexpr std::uint32_t kAv = 1 << 7;
inline constexpr std::uint32_t kPathMtu = 1 << 8;
inline constexpr std::uint32_t kTimeout = 1 << 9;
inline constexpr std::uint32_t kRetryCnt = 1 << 10;
inline constexpr std::uint32_t kRnrRetry = 1 << 11;
inline constexpr std::uint32_t kRqPsn = 1 << 12;
inline constexpr std::uint32_t kMaxQpRdAtomic = 1 << 13;
inline constexpr std::uint32_t kAltPath = 1 << 14;
inline constexpr std::uint32_t kMinRnrTimer = 1 << 15;
inline constexpr std::uint32_t kSqPsn = 1 << 16;
inline constexpr std::uint32_t kMaxDestRdAtomic = 1 << 17;
inline constexpr std::uint32_t kPathMigState = 1 << 18;
inline constexpr std::uint32_t kCap = 1 << 19;
inline constexpr std::uint32_t kDestQpn = 1 << 20;
inline constexpr std::uint32_t kRateLimit = 1 << 25;
}  // namespace attr_mask

struct Path {
  Gid local;  // the GID that sgid_index names
  Gid remote;
  IpOptions ip;
  std::uint32_t flow_label = 0;  // 20 bits: the flow, which in strict RoCE v2 is the source port (source_port.h)
  friend bool operator==(const Path&, const Path&) = default;
};

struct QpAttributes {
  QpState state = QpState::Reset;
  QpState current_state = QpState::Reset;  // with kCurState: what the caller believes
  std::uint32_t access = 0;                // queue::kAccessRemote*
  std::uint16_t path_mtu = 0;              // bytes: 256, 512, 1024, 2048 or 4096
  std::uint32_t qkey = 0;
  std::uint32_t rq_psn = 0;
  std::uint32_t sq_psn = 0;
  queue::Qpn dest_qpn{};
  Path path;
  std::uint16_t source_port = 0;  // of strict RoCE v2; follows from path, dest_qpn and the queue pair's own number
  std::uint8_t timeout = 0;       // 4.096 us * 2^timeout; 0: none. IBTA 9.9.2.1.1
  std::uint8_t retry_cnt = 0;
  std::uint8_t rnr_retry = 0;           // 7: for ever
  std::uint8_t min_rnr_timer = 0;       // code, IBTA table 45
  std::uint8_t max_rd_atomic = 0;       // as requester
  std::uint8_t max_dest_rd_atomic = 0;  // as responder
  bool sqd_async_notify = false;        // on the way to SQD: IBV_EVENT_SQ_DRAINED is wanted
  bool sq_draining = false;             // only told: in SQD, and something is still under way
};

}  // namespace nicless::wire
