// SPDX-License-Identifier: MIT
// The receiving half of a reliable connection: takes request packets in order, matches messages to posted receives,
// puts bytes where they belong, and owes acknowledgements and read responses. IBTA 9.7.4, 9.7.5, 9.7.7. Port-bound.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "wire/counters.h"
#include "wire/qp/inbound.h"
#include "wire/qp/parts.h"
#include "wire/rc/replay.h"

namespace nicless::wire {

class Responder {
 public:
  // service: Rc or Xrc.
  Responder(Service service, const QpParts& parts, const QpAttributes& attributes, Reasons& reasons,
            QpCounters& counters);

  // INIT -> RTR: the first request has PSN attributes.rq_psn.
  void start();
  void apply_limits() { replay_.resize(attributes_.max_dest_rd_atomic); }  // after it changed without a restart

  void on_request(queue::Instant now, const PacketView& packet);
  // Read responses first, then the acknowledgement of all that came before it.
  bool next_datagram(OutDatagram& out);

  // A request was refused, or a receive failed: the queue pair goes to ERR.
  bool has_failed() const { return has_failed_; }
  // ERR: the receive that a half-arrived message had taken is flushed. What is owed to the peer is still sent.
  void flush();
  bool has_lost_completion() const { return inbound_.has_lost_completion(); }
  std::uint32_t expected_psn() const { return Psn::of(expected_psn_).value(); }

 private:
  // A read response, or with `original` that of an atomic.
  struct Reply {
    std::uint64_t next_psn = 0;
    Replay::Read read;
    std::uint32_t msn = 0;
    bool is_duplicate = false;
    std::optional<std::uint64_t> original;  // of an atomic
    queue::Srqn srqn{};                     // XRC: whose regions are read
    std::uint64_t end_psn() const { return read.first_psn + read.packets; }
  };
  struct Acknowledge {
    std::uint64_t psn = 0;
    Aeth aeth;
  };

  // XRC: makes the SRQ that the packet names the one to receive from; false if there is none.
  bool find_srq(const PacketView& packet, const OpcodeInfo& info);
  void forget_lost_receive();
  void on_duplicate(const PacketView& packet, const OpcodeInfo& info, std::uint64_t psn);
  void on_out_of_sequence(std::uint64_t psn);

  void on_placed(const PacketView& packet, const OpcodeInfo& info, const Inbound::Outcome& outcome);
  void on_read(const PacketView& packet);
  void on_atomic(const PacketView& packet, const OpcodeInfo& info);
  bool is_one_too_many();

  void message_arrived() { msn_ = (msn_ + 1) & 0xffffff; }
  void advance(const PacketView& packet, std::uint64_t packets);
  void acknowledge(const Aeth& aeth, std::uint64_t psn) { acknowledge_ = Acknowledge{psn, aeth}; }
  void refuse(NakCode code);
  void give_up(NakCode code);
  void lose_memory(const Reth& reth, const char* what);  // the program has unmapped it
  void answer_read(std::uint64_t psn, const PacketView& packet, bool is_duplicate);
  void answer_atomic(std::uint64_t psn, std::uint64_t original, bool is_duplicate);
  void insert_reply(const Reply& reply);
  bool build_reply(OutDatagram& out);
  bool build_read_response(Reply& reply, OutDatagram& out);
  void break_off(NakCode code, std::uint64_t psn);
  std::byte* find_readable(const Reply& reply, std::uint64_t offset, std::uint64_t length) const;
  void build_atomic_response(const Reply& reply, OutDatagram& out);
  void build_acknowledge(OutDatagram& out);

  const Service service_;
  const QpParts& parts_;
  const QpAttributes& attributes_;
  Reasons& reasons_;
  QpCounters& counters_;

  std::uint64_t expected_psn_ = 0;  // unwrapped
  std::uint64_t placed_psn_ = 0;    // of the newest packet of a send or write that was carried out
  std::uint32_t msn_ = 0;
  // One NAK (or RNR NAK) a gap, IBTA 9.7.5.1.4: the newest PSN that came since. One below it shows that the peer has
  // gone back, and that what is missing was lost once more: that is a new gap.
  std::optional<std::uint64_t> gap_newest_psn_;
  bool has_failed_ = false;

  Inbound inbound_;
  queue::Srqn srqn_{};  // XRC: of the message that is half-arrived, or arrived last
  Replay replay_;
  std::vector<Reply> replies_;  // oldest PSN first; nearly always one at most
  std::optional<Acknowledge> acknowledge_;
};

}  // namespace nicless::wire
