// SPDX-License-Identifier: MIT
// Enumerators as text for people: ibv_wc_status_str(3) and its kin, and the rates of ibv_rate_to_mbps(3). A number that
// no release knows is called unknown.
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "provider/symbol_version.h"

namespace {

template <std::size_t N>
const char* name_at(const std::array<const char*, N>& names, int number) {
  return number >= 0 && number < static_cast<int>(N) ? names[static_cast<std::size_t>(number)] : "unknown";
}

constexpr std::array<const char*, 24> kStatusNames{
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "TM error",
    "TM software rendezvous",
};

constexpr std::array<const char*, 21> kEventNames{
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal",
    "device speed change",
};

// IBV_NODE_UNKNOWN is -1.
constexpr std::array<const char*, 8> kNodeTypeNames{
    "unknown",           "InfiniBand channel adapter",
    "InfiniBand switch", "InfiniBand router",
    "iWARP NIC",         "usNIC",
    "usNIC UDP",         "unspecified",
};

constexpr std::array<const char*, 6> kPortStateNames{
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};

constexpr std::array<const char*, 16> kOpcodeNames{
    "RDMA write",
    "RDMA write with immediate",
    "send",
    "send with immediate",
    "RDMA read",
    "atomic compare and swap",
    "atomic fetch and add",
    "local invalidate",
    "bind memory window",
    "send with invalidate",
    "TSO",
    "driver1",
    "unknown",
    "unknown",
    "RDMA flush",
    "atomic write",
};

struct Rate {
  ibv_rate code;
  int mbps;
  int multiple;  // of 2.5 Gb/s, or -1 where the speed is none; IBTA 9.11
};
constexpr std::array<Rate, 23> kRates{{
    {IBV_RATE_2_5_GBPS, 2500, 1},     {IBV_RATE_5_GBPS, 5000, 2},         {IBV_RATE_10_GBPS, 10000, 4},
    {IBV_RATE_20_GBPS, 20000, 8},     {IBV_RATE_30_GBPS, 30000, 12},      {IBV_RATE_40_GBPS, 40000, 16},
    {IBV_RATE_60_GBPS, 60000, 24},    {IBV_RATE_80_GBPS, 80000, 32},      {IBV_RATE_120_GBPS, 120000, 48},
    {IBV_RATE_14_GBPS, 14062, -1},    {IBV_RATE_56_GBPS, 56250, -1},      {IBV_RATE_112_GBPS, 112500, -1},
    {IBV_RATE_168_GBPS, 168750, -1},  {IBV_RATE_25_GBPS, 25781, -1},      {IBV_RATE_100_GBPS, 103125, -1},
    {IBV_RATE_200_GBPS, 206250, -1},  {IBV_RATE_300_GBPS, 309375, -1},    {IBV_RATE_28_GBPS, 28125, 11},
    {IBV_RATE_50_GBPS, 53125, 20},    {IBV_RATE_400_GBPS, 425000, 160},   {IBV_RATE_600_GBPS, 637500, 240},
    {IBV_RATE_800_GBPS, 850000, 320}, {IBV_RATE_1200_GBPS, 1275000, 480},
}};

template <typename Pred>
const Rate* find_rate(Pred matches) {
  const auto* found = std::find_if(kRates.begin(), kRates.end(), matches);
  return found == kRates.end() ? nullptr : found;
}

}  // namespace

extern "C" {

const char* ibv_wc_status_str(ibv_wc_status status) {
  return name_at(kStatusNames, status);
}
const char* ibv_event_type_str(ibv_event_type event) {
  return name_at(kEventNames, event);
}
const char* ibv_node_type_str(ibv_node_type node_type) {
  return name_at(kNodeTypeNames, node_type == IBV_NODE_UNKNOWN ? 0 : node_type);
}
const char* ibv_port_state_str(ibv_port_state port_state) {
  return name_at(kPortStateNames, port_state);
}
const char* nicless_wr_opcode_str(ibv_wr_opcode opcode) {
  return name_at(kOpcodeNames, opcode);
}

int ibv_rate_to_mult(ibv_rate rate) {
  const Rate* found = find_rate([&](const Rate& r) { return r.code == rate; });
  return found != nullptr ? found->multiple : -1;
}
ibv_rate mult_to_ibv_rate(int mult) {
  const Rate* found = find_rate([&](const Rate& r) { return r.multiple == mult && mult > 0; });
  return found != nullptr ? found->code : IBV_RATE_MAX;
}
int ibv_rate_to_mbps(ibv_rate rate) {
  const Rate* found = find_rate([&](const Rate& r) { return r.code == rate; });
  return found != nullptr ? found->mbps : -1;
}
ibv_rate mbps_to_ibv_rate(int mbps) {
  const Rate* found = find_rate([&](const Rate& r) { return r.mbps == mbps; });
  return found != nullptr ? found->code : IBV_RATE_MAX;
}

}  // extern "C"

// The private interface has it, the public one has not.
NICLESS_EVERY_RELEASE(nicless_wr_opcode_str, "ibv_wr_opcode_str");
