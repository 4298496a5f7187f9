// SPDX-License-Identifier: MIT
// One incoming message at a time, of sends and writes: matches it to a posted receive, puts its packets where they
// belong, and completes the receive. Knows no PSN and owes no acknowledgement: those are the responder's, of whichever
// transport. IBTA 9.7.4, 9.8.3. Port-bound.
#pragma once

#include <cstdint>
#include <span>

#include "wire/qp/parts.h"

namespace nicless::wire {

class Inbound {
 public:
  struct Outcome {
    enum class Kind : std::uint8_t {
      Placed,         // done with this packet
      NoReceive,      // nothing is posted; nothing of this packet was done
      Refused,        // the peer asked for what it may not have
      FailedLocally,  // the receive that was posted is at fault, and completed in error
    };
    Kind kind = Kind::Placed;
    NakCode nak = NakCode::InvalidRequest;  // what the peer is told, unless Placed or NoReceive
  };

  // peer: whether it is told what becomes of its requests. On an unreliable connection it is not.
  enum class Peer : std::uint8_t { Hears, HearsNothing };
  Inbound(const QpParts& parts, const QpAttributes& attributes, Reasons& reasons, Peer peer = Peer::Hears);

  // XRC: of the SRQ that the packets to come name. Not within a message.
  void receive_from(const Receiving& place) { place_ = place; }

  // A message goes on with the kind it began with, and all its packets but the last are full. IBTA 9.7.4.1.
  bool is_well_formed(const PacketView& packet, const OpcodeInfo& info) const;
  Outcome on_send(const PacketView& packet, const OpcodeInfo& info);
  Outcome on_write(const PacketView& packet, const OpcodeInfo& info);
  // Checks a remote address range; a fault is told as a sentence about "a<what>".
  bool may_access(const Reth& reth, std::uint32_t access, const char* what);
  std::byte* find(const Reth& reth, std::uint32_t access, const char* what);  // null: a fault
  // The program has unmapped the memory of a range that was found: tells it, by a sentence and QP_FATAL.
  void lose_memory(const Reth& reth, const char* what);

  bool is_in_message() const { return message_ != Message::None; }
  void drop_message() { message_ = Message::None; }  // a receive it had taken waits for the next one
  void flush();                                      // completes a receive that was taken with WrFlushErr
  // An overrun CQ did not take the completion of a receive. Of an XRC target that CQ is an SRQ's.
  bool has_lost_completion() const { return has_lost_completion_; }
  void reset();                                    // forgets it; room of an SRQ comes back
  void forget_receive() { has_receive_ = false; }  // the SRQ that it was taken from is gone

 private:
  enum class Message : std::uint8_t { None, Send, Write };  // what is half-arrived

  bool take_receive();
  bool invalidate(queue::RKey rkey);
  Outcome scatter(std::span<const std::byte> payload);
  Outcome begin_write(const PacketView& packet);  // Placed: it may go on
  Outcome place_write(std::span<const std::byte> payload);
  void complete_receive(const PacketView& packet, const OpcodeInfo& info, queue::WcOpcode opcode, std::uint64_t bytes);
  std::string told(const char* status) const;  // the end of a sentence: what the peer hears
  void complete(const queue::Completion& completion);
  void fail_receive(queue::WcStatus status);

  const QpParts& parts_;
  const QpAttributes& attributes_;
  Reasons& reasons_;
  const Peer peer_;
  Receiving place_;
  Message message_ = Message::None;
  std::uint64_t received_bytes_ = 0;  // of the half-arrived message
  Reth write_;                        // of a half-arrived write
  queue::RecvWqe receive_;            // taken for a half-arrived message
  queue::SgCursor cursor_;            // over receive_
  bool has_receive_ = false;
  bool has_lost_completion_ = false;
};

}  // namespace nicless::wire
