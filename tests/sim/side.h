// SPDX-License-Identifier: MIT
// One end of a connection with all that it is made of: queues, completion queues, registered memory and the queue pair
// (reliable unless asked otherwise), on an engine of the caller's. No network in here: a Pair joins two of them through
// a World, an ExactPair by hand. Thread-compatible.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "queue/async_events.h"
#include "queue/completion_queue.h"
#include "queue/memory_region.h"
#include "queue/receive_queue.h"
#include "queue/send_queue.h"
#include "queue/shared_receive_queue.h"
#include "queue/xrc_domain.h"
#include "wire/engine.h"
#include "wire/qp/program_queue_pair.h"

namespace nicless::sim {

// A completion as a value. What ibv_poll_cq(3) leaves undefined is zero here: everything but wr_id and status of a
// failure, byte_len of a send or a write, src_qp of all but datagrams.
struct Wc {
  std::uint64_t wr_id = 0;
  queue::WcStatus status = queue::WcStatus::Success;
  queue::WcOpcode opcode = queue::WcOpcode::Send;
  std::uint32_t byte_len = 0;
  std::uint8_t flags = 0;
  std::uint32_t imm = 0;
  std::uint32_t src_qp = 0;
  friend bool operator==(const Wc&, const Wc&) = default;
};
std::string to_string(const Wc& wc);
std::ostream& operator<<(std::ostream& out, const Wc& wc);
Wc failed(std::uint64_t wr_id, queue::WcStatus status);

struct SideConfig {
  std::uint32_t send_depth = 128;
  std::uint32_t recv_depth = 128;
  std::uint32_t sge_max = queue::kSgeMax;
  std::uint32_t inline_max = 256;
  bool signal_all = false;
  wire::Transport transport = wire::Transport::Rc;
  std::uint16_t port_mtu = 4096;                         // of datagrams
  std::uint32_t cq_entries = 4096;                       // of each of the two CQs
  queue::MrTable* regions = nullptr;                     // shared by several sides; null: one of its own
  queue::SharedReceiveQueue* shared_receives = nullptr;  // null: a receive queue of its own
  queue::XrcDomain* xrc_domain = nullptr;                // of an XRC target
};

// What both ends of a connection agree on, and the starting PSNs.
struct ConnectionConfig {
  std::uint16_t path_mtu = 1024;
  std::uint32_t a_psn = 0x000100;  // the first packet that A sends
  std::uint32_t b_psn = 0x000200;
  std::uint8_t timeout = 14;  // 67 ms
  std::uint8_t retry_cnt = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t min_rnr_timer = 12;  // 0.64 ms
  std::uint8_t max_rd_atomic = 16;
  std::uint8_t max_dest_rd_atomic = 16;
  std::uint32_t qkey = 0x1111'1111;  // of datagrams, at both ends
  std::uint32_t access =
      queue::kAccessLocalWrite | queue::kAccessRemoteWrite | queue::kAccessRemoteRead | queue::kAccessRemoteAtomic;
};

// Registered memory; filled with 0xa5.
class Buffer {
 public:
  Buffer(queue::MrTable& table, queue::PdId pd, std::size_t size, std::uint32_t access);
  Buffer(Buffer&&) = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::span<std::byte> bytes() { return bytes_; }
  std::uint64_t address(std::size_t offset = 0) const {
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(bytes_.data())) + offset;
  }
  queue::Sge sge(std::size_t offset, std::size_t length) const {
    return {address(offset), static_cast<std::uint32_t>(length), keys_.lkey};
  }
  queue::RKey rkey() const { return keys_.rkey; }
  queue::LKey lkey() const { return keys_.lkey; }

 private:
  std::vector<std::byte> bytes_;
  queue::MemoryKeys keys_;
};

class Side {
 public:
  Side(wire::Engine& engine, const wire::Endpoint& endpoint, const SideConfig& config, std::uint64_t seed);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  queue::Qpn qpn() const { return qpn_; }
  wire::Endpoint endpoint() const { return endpoint_; }
  wire::Engine& engine() { return engine_; }
  wire::ProgramQueuePair& qp() { return *qp_; }
  queue::SendQueue& send_queue() { return send_queue_; }
  queue::ReceiveQueue& receive_queue() { return receive_queue_; }
  queue::CompletionQueue& send_cq() { return send_cq_; }
  queue::CompletionQueue& recv_cq() { return recv_cq_; }
  queue::AsyncEvents& async_events() { return async_events_; }
  queue::MrTable& regions() { return regions_; }
  wire::Transport transport() const { return qp_->transport(); }
  queue::PdId pd() const { return pd_; }

  // RESET -> INIT -> RTR -> RTS. A failed step is a Failure.
  void connect(queue::Instant now, const Side& peer, const ConnectionConfig& config, std::uint32_t own_psn,
               std::uint32_t peer_psn);
  void connect_to_rtr(queue::Instant now, const Side& peer, const ConnectionConfig& config, std::uint32_t peer_psn);
  // An edge that needs nothing but the state; more: further bits of the mask. SQ_DRAINED is asked for, if the mask is.
  queue::Result<void> to_state(queue::Instant now, wire::QpState state, std::uint32_t more = 0);

  Buffer make_buffer(std::size_t size, std::uint32_t access = queue::kAccessLocalWrite | queue::kAccessRemoteWrite |
                                                              queue::kAccessRemoteRead | queue::kAccessRemoteAtomic);

  // As ibv_post_send and ibv_post_recv do it: the state, then the queue, then the transport. Computes wqe.length.
  queue::Result<void> post_send(queue::Instant now, queue::Wqe wqe);
  queue::Result<void> post_recv(std::uint64_t wr_id, std::span<const queue::Sge> sges);

  std::vector<Wc> poll_send() { return poll(send_cq_); }
  std::vector<Wc> poll_recv() { return poll(recv_cq_); }

 private:
  std::vector<Wc> poll(queue::CompletionQueue& cq);

  wire::Engine& engine_;
  const wire::Endpoint endpoint_;
  const queue::PdId pd_{1};
  const queue::Qpn qpn_;
  queue::AsyncEvents async_events_;
  queue::MrTable own_regions_;
  queue::MrTable& regions_;
  queue::CompletionQueue send_cq_;
  queue::CompletionQueue recv_cq_;
  queue::SendQueue send_queue_;
  queue::ReceiveQueue receive_queue_;
  queue::SharedReceiveQueue* const shared_receives_;
  wire::FlightBudget flight_;
  std::unique_ptr<wire::ProgramQueuePair> qp_;
};

}  // namespace nicless::sim
