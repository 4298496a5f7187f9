// SPDX-License-Identifier: MIT
// Work requests as this project keeps them: an owned copy of what ibv_post_send(3) and ibv_post_recv(3) were given, so
// that the program may reuse its ibv_send_wr, SGE list and inline data as soon as the call returns.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <span>

#include "queue/completion.h"
#include "queue/types.h"

namespace nicless::queue {

inline constexpr std::uint32_t kSgeMax = 32;            // device limit: entries in one scatter-gather list
inline constexpr std::uint32_t kInlineBytesMax = 1024;  // device limit: inline data of one send
inline constexpr std::uint32_t kQueueDepthMax = 32768;  // device limit: max_qp_wr and max_srq_wr
inline constexpr std::uint64_t kMessageBytesMax = std::uint64_t{1} << 31;  // IBTA 9.7.5.1.2: max message size

// One entry of a scatter-gather list; addr is a virtual address (or an offset into a zero-based region).
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t length = 0;  // bytes
  LKey lkey{};
  friend bool operator==(const Sge&, const Sge&) = default;
};

// Something for each entry of a list. Lists are short: room for the longest in every queue pair was a fifth of its
// memory. Whoever keeps one reserves, when it is made, room for the longest list that may come: once traffic flows
// nothing is allocated (a bad_alloc would meet whichever thread runs the engine).
template <typename T>
using SgeArray = boost::container::small_vector<T, 4>;

// Numbers of ibv_wr_opcode.
enum class SendOpcode : std::uint8_t {
  Write = 0,
  WriteImm = 1,
  Send = 2,
  SendImm = 3,
  Read = 4,
  CompareSwap = 5,
  FetchAdd = 6,
  LocalInv = 7,
  BindMw = 8,
  SendInv = 9,
};

// As the man page of ibv_post_send names them, without IBV_WR_.
constexpr const char* to_string(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::Write:
      return "RDMA_WRITE";
    case SendOpcode::WriteImm:
      return "RDMA_WRITE_WITH_IMM";
    case SendOpcode::Send:
      return "SEND";
    case SendOpcode::SendImm:
      return "SEND_WITH_IMM";
    case SendOpcode::Read:
      return "RDMA_READ";
    case SendOpcode::CompareSwap:
      return "ATOMIC_CMP_AND_SWP";
    case SendOpcode::FetchAdd:
      return "ATOMIC_FETCH_AND_ADD";
    case SendOpcode::LocalInv:
      return "LOCAL_INV";
    case SendOpcode::BindMw:
      return "BIND_MW";
    case SendOpcode::SendInv:
      return "SEND_WITH_INV";
  }
  return "what is no opcode";
}

// Where a datagram goes, copied from the address handle and the work request when it is posted, so that the handle may
// be destroyed at once. GIDs are 16 bytes in network order.
struct DatagramAddress {
  std::array<std::byte, 16> local_gid{};
  std::array<std::byte, 16> remote_gid{};
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;  // 20 bits
  Qpn remote_qpn{};
  std::uint32_t remote_qkey = 0;
  friend bool operator==(const DatagramAddress&, const DatagramAddress&) = default;
};

// A send work request. In a SendQueue the spans point into the queue's own storage; in the argument of
// SendQueue::post they point at the caller's.
struct Wqe {
  std::uint64_t wr_id = 0;
  SendOpcode opcode = SendOpcode::Send;
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  bool has_inline_data = false;  // then inline_data holds the message and sges is empty
  // Not Success: the request is not carried out and completes so, because the user asked for it (nicless run --fail).
  WcStatus forced_status = WcStatus::Success;
  std::uint32_t imm_or_key = 0;  // immediate data in network byte order, or the rkey to invalidate
  RKey rkey{};
  std::uint64_t remote_addr = 0;  // write, read, atomics
  std::uint64_t compare_add = 0;  // atomics
  std::uint64_t swap = 0;
  DatagramAddress datagram{};  // of an unreliable datagram
  Srqn remote_srqn{};          // XRC: the SRQ at the target's end
  std::span<const Sge> sges{};
  std::span<const std::byte> inline_data{};
  std::uint64_t length = 0;  // bytes of the whole message
};

// What a BindMw request asks for. It travels in fields of a Wqe that mean something else to other requests.
struct Binding {
  RKey rkey{};                // the window's from then on
  LKey region{};              // of no meaning where length is 0
  std::uint64_t address = 0;  // as work requests name it
  std::uint64_t length = 0;   // bytes; 0 unbinds
  std::uint32_t access = 0;   // kAccess*

  static Binding of(const Wqe& wqe) {
    return {wqe.rkey, LKey{wqe.imm_or_key}, wqe.remote_addr, wqe.compare_add, static_cast<std::uint32_t>(wqe.swap)};
  }
  void put_into(Wqe& wqe) const {
    wqe.rkey = rkey;
    wqe.imm_or_key = region.value();
    wqe.remote_addr = address;
    wqe.compare_add = length;
    wqe.swap = access;
  }
};

// A receive work request, moved out of its queue whole.
struct RecvWqe {
  std::uint64_t wr_id = 0;
  SgeArray<Sge> sge_storage;
  void reserve(std::uint32_t sge_max) { sge_storage.reserve(sge_max); }
  std::span<const Sge> sges() const { return {sge_storage.data(), sge_storage.size()}; }
};

}  // namespace nicless::queue
