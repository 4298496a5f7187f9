// SPDX-License-Identifier: MIT
// The engine of one port: its queue pairs and the GSI behind five calls, no I/O.
//
//   on_datagram(now, datagram)   on_post(now, qpn)   on_deadline(now)   next_datagram(now, out)   next_deadline()
//
// One turn of whoever holds the port's lock: posts, then at most N datagrams, then deadlines, then next_datagram until
// it returns false or the batch is full. Port-bound: the caller holds the port's lock for every call.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "queue/deadlines.h"
#include "queue/result.h"
#include "queue/types.h"
#include "wire/addressing.h"
#include "wire/counters.h"
#include "wire/multicast.h"
#include "wire/packet/datagram.h"
#include "wire/queue_pair.h"
#include "wire/ud/gsi.h"

namespace nicless::wire {

// Datagrams of one queue pair in a row, before it is the turn of the next one: they go to one peer, so that the I/O
// layer can hand them to the kernel in one call (UDP_SEGMENT).
inline constexpr std::uint32_t kBurstMax = 16;

class Engine {
 public:
  // udp_port: the port of the socket this engine stands behind.
  explicit Engine(std::uint16_t udp_port, Addressing addressing = Addressing::port_in_qpn());
  ~Engine();

  std::uint16_t udp_port() const { return udp_port_; }
  EngineCounters counters() const;
  // Of all queue pairs that are or were here.
  QpCounters queue_pair_counters() const;

  // A free QPN of this port, recently freed ones last; ENOMEM when all are taken. It stays reserved until remove().
  queue::Result<queue::Qpn> reserve_qpn();
  // The queue pair must outlive its stay; remove() forgets it and frees its QPN.
  void add(queue::Qpn qpn, QueuePair& queue_pair);
  void remove(queue::Qpn qpn);
  std::size_t reserved_qpns() const { return slots_.size() - freed_.size(); }

  Gsi& gsi() { return gsi_; }
  // Packets to the multicast QPN reach those queue pairs that are in the group of their destination address. Whoever
  // removes a queue pair takes it out of its groups before.
  MulticastTable& multicast() { return multicast_; }

  void on_datagram(queue::Instant now, const InDatagram& datagram);
  void on_post(queue::Instant now, queue::Qpn qpn);  // also after modify_qp: something may be due
  void on_deadline(queue::Instant now);
  // The next datagram, without its ICRC; its source port is this port's or, in strict mode, the one that its queue
  // pair chose; its destination port the peer's. Datagrams of
  // one queue pair come in a row, at most kBurstMax of them before it is the turn of another.
  bool next_datagram(queue::Instant now, OutDatagram& out);
  std::optional<queue::Instant> next_deadline();
  // What next_datagram gave out since the last call has left (or was lost on its way out): the program may have the
  // memory back. Called after each batch, before the lock is released.
  void on_sent();

 private:
  struct Slot {
    QueuePair* queue_pair = nullptr;
    bool is_ready = false;  // stands in ready_
    bool has_sent = false;  // stands in sent_
  };
  InDatagram from_where_to_answer(InDatagram datagram) const;
  std::uint32_t reserved_index(queue::Qpn qpn) const;
  Slot* find(queue::Qpn qpn);  // null: no queue pair there
  std::uint32_t index_of(const Slot& slot) const { return static_cast<std::uint32_t>(&slot - slots_.data()); }
  void on_multicast(queue::Instant now, const PacketView& packet, const InDatagram& datagram);
  bool next_of_ready(queue::Instant now, OutDatagram& out);
  void mark_ready(std::uint32_t index);
  void refresh_deadlines();
  void refresh_deadline(std::uint32_t index);
  void count(DecodeError error);

  const std::uint16_t udp_port_;
  const Addressing addressing_;
  std::vector<Slot> slots_;                    // by index; of all that were ever reserved
  queue::Deadlines<std::uint32_t> deadlines_;  // of those with a queue pair, by index
  std::deque<std::uint32_t> freed_;            // taken from the front, once every index was begun
  std::deque<std::uint32_t> ready_;            // may have something to send; served in turn
  std::uint32_t burst_ = 0;                    // datagrams in a row from the front of ready_
  std::vector<std::uint32_t> sent_;            // gave out datagrams since the last on_sent()
  Gsi gsi_;
  MulticastTable multicast_;
  EngineCounters counters_;
  QpCounters removed_counters_;  // of queue pairs that have left
};

}  // namespace nicless::wire
