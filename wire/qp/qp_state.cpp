// SPDX-License-Identifier: MIT
#include "wire/qp/qp_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace nicless::wire {
namespace {

namespace m = attr_mask;

constexpr std::size_t kStates = 7;

struct Masks {
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
};

struct Edge {
  bool exists = false;
  Masks rc, uc, ud;
};

using Table = std::array<std::array<Edge, kStates>, kStates>;

constexpr std::size_t index_of(QpState state) {
  return static_cast<std::size_t>(state);
}

// What the Linux kernel holds programs to, which is ibv_modify_qp(3) and the optional attributes of IBTA tables 91 to
// 96. kState is not listed: it may always be given. Two attributes of the man page are taken by no edge of these
// transports, IBV_QP_CAP (no resizing) and IBV_QP_RATE_LIMIT. A queue pair of RC never stands in SQE.
constexpr Table make_table() {
  Table table{};
  const auto edge = [&table](QpState from, QpState to) -> Edge& {
    Edge& e = table[index_of(from)][index_of(to)];
    e.exists = true;
    return e;
  };
  using enum QpState;
  for (QpState from : {Reset, Init, Rtr, Rts, Sqd, Sqe, Err}) {
    edge(from, Reset);
    if (from != Reset) edge(from, Err);
  }

  constexpr std::uint32_t kConnectedInit = m::kPkeyIndex | m::kPort | m::kAccessFlags;
  constexpr std::uint32_t kDatagramInit = m::kPkeyIndex | m::kPort | m::kQkey;
  Edge& reset_init = edge(Reset, Init);
  reset_init.rc.required = reset_init.uc.required = kConnectedInit;
  reset_init.ud.required = kDatagramInit;

  Edge& init_init = edge(Init, Init);
  init_init.rc.optional = init_init.uc.optional = kConnectedInit;
  init_init.ud.optional = kDatagramInit;

  constexpr std::uint32_t kConnectedRtr = m::kAv | m::kPathMtu | m::kDestQpn | m::kRqPsn;
  Edge& init_rtr = edge(Init, Rtr);
  init_rtr.rc.required = kConnectedRtr | m::kMaxDestRdAtomic | m::kMinRnrTimer;
  init_rtr.uc.required = kConnectedRtr;
  init_rtr.rc.optional = init_rtr.uc.optional = m::kAltPath | m::kAccessFlags | m::kPkeyIndex;
  init_rtr.ud.optional = m::kPkeyIndex | m::kQkey;

  // What may change while packets flow: the same on three edges.
  constexpr Masks kRcLive{.optional =
                              m::kCurState | m::kAltPath | m::kAccessFlags | m::kMinRnrTimer | m::kPathMigState};
  constexpr Masks kUcLive{.optional = m::kCurState | m::kAltPath | m::kAccessFlags | m::kPathMigState};
  constexpr Masks kUdLive{.optional = m::kCurState | m::kQkey};
  for (QpState from : {Rtr, Rts, Sqd}) {
    Edge& to_rts = edge(from, Rts);
    to_rts.rc = kRcLive;
    to_rts.uc = kUcLive;
    to_rts.ud = kUdLive;
  }
  Edge& rtr_rts = edge(Rtr, Rts);
  rtr_rts.rc.required = m::kTimeout | m::kRetryCnt | m::kRnrRetry | m::kSqPsn | m::kMaxQpRdAtomic;
  rtr_rts.uc.required = rtr_rts.ud.required = m::kSqPsn;

  Edge& rts_sqd = edge(Rts, Sqd);
  rts_sqd.rc.optional = rts_sqd.uc.optional = rts_sqd.ud.optional = m::kEnSqdAsyncNotify;

  Edge& sqd_sqd = edge(Sqd, Sqd);
  sqd_sqd.uc.optional = m::kAv | m::kAltPath | m::kAccessFlags | m::kPkeyIndex | m::kPathMigState;
  sqd_sqd.rc.optional = sqd_sqd.uc.optional | m::kPort | m::kTimeout | m::kRetryCnt | m::kRnrRetry | m::kMaxQpRdAtomic |
                        m::kMaxDestRdAtomic | m::kMinRnrTimer;
  sqd_sqd.ud.optional = m::kPkeyIndex | m::kQkey;

  Edge& sqe_rts = edge(Sqe, Rts);
  sqe_rts.uc.optional = m::kCurState | m::kAccessFlags;
  sqe_rts.ud.optional = m::kCurState | m::kQkey;
  return table;
}

constexpr Table kTable = make_table();

struct Name {
  std::uint32_t bit;
  const char* name;
};

constexpr std::array<Name, 22> kNames{{
    {m::kState, "IBV_QP_STATE"},
    {m::kCurState, "IBV_QP_CUR_STATE"},
    {m::kEnSqdAsyncNotify, "IBV_QP_EN_SQD_ASYNC_NOTIFY"},
    {m::kAccessFlags, "IBV_QP_ACCESS_FLAGS"},
    {m::kPkeyIndex, "IBV_QP_PKEY_INDEX"},
    {m::kPort, "IBV_QP_PORT"},
    {m::kQkey, "IBV_QP_QKEY"},
    {m::kAv, "IBV_QP_AV"},
    {m::kPathMtu, "IBV_QP_PATH_MTU"},
    {m::kTimeout, "IBV_QP_TIMEOUT"},
    {m::kRetryCnt, "IBV_QP_RETRY_CNT"},
    {m::kRnrRetry, "IBV_QP_RNR_RETRY"},
    {m::kRqPsn, "IBV_QP_RQ_PSN"},
    {m::kMaxQpRdAtomic, "IBV_QP_MAX_QP_RD_ATOMIC"},
    {m::kAltPath, "IBV_QP_ALT_PATH"},
    {m::kMinRnrTimer, "IBV_QP_MIN_RNR_TIMER"},
    {m::kSqPsn, "IBV_QP_SQ_PSN"},
    {m::kMaxDestRdAtomic, "IBV_QP_MAX_DEST_RD_ATOMIC"},
    {m::kPathMigState, "IBV_QP_PATH_MIG_STATE"},
    {m::kCap, "IBV_QP_CAP"},
    {m::kDestQpn, "IBV_QP_DEST_QPN"},
    {m::kRateLimit, "IBV_QP_RATE_LIMIT"},
}};

constexpr Masks without(const Masks& masks, std::uint32_t bits) {
  return {masks.required & ~bits, masks.optional & ~bits};
}

// Half a reliable connection takes what concerns its half. (That a target is told a timeout and a PSN to send from is
// the kernel's choice.)
Masks masks_of(const Edge& edge, Transport transport) {
  switch (transport) {
    case Transport::Rc:
      break;
    case Transport::Uc:
      return edge.uc;
    case Transport::Ud:
      return edge.ud;
    case Transport::XrcInitiator:
    case Transport::XrcTarget:
      return without(edge.rc, ignored_attributes(transport));
  }
  return edge.rc;
}

// The states between, on the shortest way that ibv_modify_qp can go; empty where there is none. From a state to itself
// is a way round, so the start does not count as seen.
std::vector<QpState> way_between(QpState from, QpState to) {
  std::array<std::size_t, kStates> reached_from{};
  std::array<bool, kStates> seen{};
  std::vector<std::size_t> queue{index_of(from)};
  for (std::size_t next = 0; next < queue.size() && !seen[index_of(to)]; ++next) {
    for (std::size_t s = 0; s < kStates; ++s) {
      if (seen[s] || !kTable[queue[next]][s].exists) continue;
      seen[s] = true;
      reached_from[s] = queue[next];
      queue.push_back(s);
    }
  }
  std::vector<QpState> between;
  if (!seen[index_of(to)]) return between;
  for (std::size_t s = reached_from[index_of(to)]; s != index_of(from); s = reached_from[s]) {
    between.insert(between.begin(), static_cast<QpState>(s));
  }
  return between;
}

std::string edge_name(QpState from, QpState to) {
  return std::string(to_string(from)) + "->" + to_string(to);
}

queue::Error no_such_edge(QpState from, QpState to) {
  std::string why = edge_name(from, to) + " is not a transition";
  const std::vector<QpState> between = way_between(from, to);
  for (std::size_t i = 0; i < between.size(); ++i) {
    why += i == 0 ? ", go through " : i + 1 == between.size() ? " and " : ", ";
    why += to_string(between[i]);
  }
  if (to == QpState::Sqe) why += ", a queue pair enters SQE by itself when a send fails";
  return queue::error(EINVAL, std::move(why));
}

}  // namespace

const char* to_string(QpState state) {
  switch (state) {
    case QpState::Reset:
      return "RESET";
    case QpState::Init:
      return "INIT";
    case QpState::Rtr:
      return "RTR";
    case QpState::Rts:
      return "RTS";
    case QpState::Sqd:
      return "SQD";
    case QpState::Sqe:
      return "SQE";
    case QpState::Err:
      return "ERR";
  }
  return "unknown state";
}

std::uint32_t ignored_attributes(Transport transport) {
  if (transport == Transport::XrcInitiator) return m::kMaxDestRdAtomic | m::kMinRnrTimer;
  if (transport == Transport::XrcTarget) return m::kMaxQpRdAtomic | m::kRetryCnt | m::kRnrRetry;
  return 0;
}

queue::Result<void> check_transition(Transport transport, QpState from, QpState to, std::uint32_t mask) {
  if (index_of(from) >= kStates || index_of(to) >= kStates) {
    return queue::error(EINVAL,
                        "there is no queue pair state " + std::to_string(std::max(index_of(from), index_of(to))));
  }
  const Edge& edge = kTable[index_of(from)][index_of(to)];
  if (!edge.exists) return no_such_edge(from, to);

  const Masks masks = masks_of(edge, transport);
  std::string why;
  if (const std::uint32_t missing = masks.required & ~mask) {
    why = "missing " + names_of(missing);
  }
  if (const std::uint32_t foreign = mask & ~(masks.required | masks.optional | m::kState)) {
    why += (why.empty() ? "does not take " : ", and does not take ") + names_of(foreign);
  }
  if (why.empty()) return {};
  return queue::error(EINVAL, edge_name(from, to) + ": " + why);
}

std::string names_of(std::uint32_t mask) {
  std::string names;
  const auto append = [&names](const char* name) {
    if (!names.empty()) names += ", ";
    names += name;
  };
  for (const Name& name : kNames) {
    if ((mask & name.bit) != 0) append(name.name);
    mask &= ~name.bit;
  }
  if (mask != 0) {
    std::array<char, 16> unknown{};
    std::snprintf(unknown.data(), unknown.size(), "0x%x", mask);
    append(unknown.data());
  }
  return names;
}

}  // namespace nicless::wire
