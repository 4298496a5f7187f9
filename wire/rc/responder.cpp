// SPDX-License-Identifier: MIT
// Requests: what arrives. What is owed in return is in responder_replies.cpp.
#include "wire/rc/responder.h"

#include <algorithm>

#include "queue/check.h"
#include "queue/guarded_copy.h"
#include "wire/rc/unwrapped.h"

namespace nicless::wire {

using queue::AsyncType;

namespace {

constexpr std::uint32_t kAtomicBytes = 8;

// Atomic with the program's own accesses and with other queue pairs': IBV_ATOMIC_GLOB.
using Word [[gnu::may_alias]] = std::uint64_t;

std::uint64_t compare_swap(std::byte* target, std::uint64_t compare, std::uint64_t swap) {
  std::uint64_t original = compare;
  __atomic_compare_exchange_n(reinterpret_cast<Word*>(target), &original, swap, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  return original;
}

std::uint64_t fetch_add(std::byte* target, std::uint64_t add) {
  return __atomic_fetch_add(reinterpret_cast<Word*>(target), add, __ATOMIC_SEQ_CST);
}

// What was there before; nothing if the memory is not there any more.
std::optional<std::uint64_t> carry_out(Op op, const AtomicEth& request, std::byte* target) {
  std::uint64_t original = 0;
  const bool is_done = queue::guarded({target, kAtomicBytes}, [&] {
    original = op == Op::CompareSwap ? compare_swap(target, request.compare, request.swap_add)
                                     : fetch_add(target, request.swap_add);
  });
  return is_done ? std::optional(original) : std::nullopt;
}

}  // namespace

Responder::Responder(Service service, const QpParts& parts, const QpAttributes& attributes, Reasons& reasons,
                     QpCounters& counters)
    : service_(service),
      parts_(parts),
      attributes_(attributes),
      reasons_(reasons),
      counters_(counters),
      inbound_(parts, attributes, reasons) {}

void Responder::start() {
  expected_psn_ = first_unwrapped(attributes_.rq_psn);
  placed_psn_ = expected_psn_ - 1;
  msn_ = 0;
  gap_newest_psn_.reset();
  has_failed_ = false;
  forget_lost_receive();
  inbound_.reset();
  replay_.start(attributes_.max_dest_rd_atomic);
  replies_.clear();
  acknowledge_.reset();
}

void Responder::on_request(queue::Instant, const PacketView& packet) {
  if (has_failed_) return;
  const OpcodeInfo& info = *find_opcode(packet.headers.bth.opcode);
  const std::int64_t unwrapped = unwrap(static_cast<std::int64_t>(expected_psn_), packet.headers.bth.psn);
  const auto psn = static_cast<std::uint64_t>(unwrapped);
  if (unwrapped < 0 || psn < expected_psn_) return on_duplicate(packet, info, psn);
  if (psn > expected_psn_) return on_out_of_sequence(psn);

  gap_newest_psn_.reset();
  if (!inbound_.is_well_formed(packet, info)) {
    reasons_.add("received %s of %zu bytes where the message or the path MTU of %u does not allow it", info.name,
                 packet.payload.size(), unsigned{attributes_.path_mtu});
    return refuse(NakCode::InvalidRequest);
  }
  if (parts_.xrc_domain && !find_srq(packet, info)) return refuse(NakCode::InvalidRequest);
  switch (info.family) {
    case Family::Send:
      return on_placed(packet, info, inbound_.on_send(packet, info));
    case Family::Write:
      return on_placed(packet, info, inbound_.on_write(packet, info));
    case Family::ReadRequest:
      return on_read(packet);
    case Family::Atomic:
      return on_atomic(packet, info);
    default:
      reasons_.add("received %s, which this queue pair does not answer", info.name);
      return refuse(NakCode::InvalidRequest);
  }
}

bool Responder::find_srq(const PacketView& packet, const OpcodeInfo& info) {
  const queue::Srqn srqn = packet.headers.xrc.srqn;
  if (inbound_.is_in_message() && srqn != srqn_) {
    reasons_.add("received %s for SRQ 0x%x within a message for SRQ 0x%x", info.name, srqn.value(), srqn_.value());
    return false;
  }
  const auto srq = parts_.xrc_domain->find(srqn);
  if (!srq) {
    reasons_.add("received %s for SRQ 0x%x, which is none of this XRC domain's; the sender gets REM_INV_REQ_ERR",
                 info.name, srqn.value());
    return false;
  }
  srqn_ = srqn;
  inbound_.receive_from(receiving_of(*srq));
  return true;
}

// An SRQ may be destroyed while a message for it is half-arrived: the list that it had taken is lost with it.
void Responder::forget_lost_receive() {
  if (parts_.xrc_domain && !parts_.xrc_domain->find(srqn_)) inbound_.forget_receive();
}

void Responder::flush() {
  forget_lost_receive();
  inbound_.flush();
}

// What was done already is acknowledged again, never done again; a read is answered again. IBTA 9.7.5.1.2.
void Responder::on_duplicate(const PacketView& packet, const OpcodeInfo& info, std::uint64_t psn) {
  ++counters_.duplicate;
  if (info.family == Family::ReadRequest) {
    if (replay_.find(psn, packet.headers.reth, attributes_.path_mtu)) answer_read(psn, packet, true);
    return;
  }
  if (info.family == Family::Atomic) {
    const Replay::Atomic* done = replay_.find(psn, packet.headers.atomic);
    if (done != nullptr) answer_atomic(psn, done->original, true);
    return;
  }
  // A NAK that is still owed says more than an acknowledgement would. Reads and atomics behind the newest send or write
  // are left out: only their responses answer them, and Soft-RoCE takes an acknowledgement with their PSN for one.
  if (!acknowledge_) acknowledge(Aeth::ack(msn_), placed_psn_);
}

void Responder::on_out_of_sequence(std::uint64_t psn) {
  ++counters_.out_of_sequence;
  if (gap_newest_psn_ && psn > *gap_newest_psn_) {
    gap_newest_psn_ = psn;
    return;
  }
  gap_newest_psn_ = psn;
  acknowledge(Aeth::nak(NakCode::PsnSequenceError, msn_), expected_psn_);
}

void Responder::on_placed(const PacketView& packet, const OpcodeInfo& info, const Inbound::Outcome& outcome) {
  using Kind = Inbound::Outcome::Kind;
  switch (outcome.kind) {
    case Kind::Placed:
      if (info.ends_message()) message_arrived();
      return advance(packet, 1);
    case Kind::NoReceive:
      ++counters_.rnr_sent;
      gap_newest_psn_ = expected_psn_;  // the packets behind this one are dropped without a further NAK
      return acknowledge(Aeth::rnr(attributes_.min_rnr_timer, msn_), expected_psn_);
    case Kind::Refused:
      return refuse(outcome.nak);
    case Kind::FailedLocally:
      return give_up(outcome.nak);
  }
}

void Responder::on_read(const PacketView& packet) {
  const Reth& reth = packet.headers.reth;
  if (!(attributes_.access & queue::kAccessRemoteRead)) {
    reasons_.add("received a read, but the queue pair has no IBV_ACCESS_REMOTE_READ; the sender gets REM_INV_REQ_ERR");
    return refuse(NakCode::InvalidRequest);
  }
  if (is_one_too_many()) return refuse(NakCode::InvalidRequest);
  if (reth.length > queue::kMessageBytesMax) {
    reasons_.add("received a read of %u bytes; 2^31 is the most; the sender gets REM_INV_REQ_ERR", reth.length);
    return refuse(NakCode::InvalidRequest);
  }
  if (!inbound_.may_access(reth, queue::kAccessRemoteRead, " read")) return refuse(NakCode::RemoteAccessError);
  message_arrived();
  replay_.add({expected_psn_, packets_for(reth.length, attributes_.path_mtu), reth});
  answer_read(expected_psn_, packet, false);
  advance(packet, packets_for(reth.length, attributes_.path_mtu));
}

// Carried out once, whatever the network does: a duplicate gets the result that is kept. IBTA 9.4.5, 9.7.4.1.6.
void Responder::on_atomic(const PacketView& packet, const OpcodeInfo& info) {
  const AtomicEth& request = packet.headers.atomic;
  if (!(attributes_.access & queue::kAccessRemoteAtomic)) {
    reasons_.add(
        "received an atomic, but the queue pair has no IBV_ACCESS_REMOTE_ATOMIC; the sender gets REM_INV_REQ_ERR");
    return refuse(NakCode::InvalidRequest);
  }
  if (is_one_too_many()) return refuse(NakCode::InvalidRequest);
  if (request.address % kAtomicBytes != 0) {
    reasons_.add("received an atomic at 0x%llx, which is not a multiple of 8; the sender gets REM_INV_REQ_ERR",
                 static_cast<unsigned long long>(request.address));
    return refuse(NakCode::InvalidRequest);
  }
  const Reth range{request.address, request.rkey, kAtomicBytes};
  std::byte* const target = inbound_.find(range, queue::kAccessRemoteAtomic, "n atomic");
  if (target == nullptr) return refuse(NakCode::RemoteAccessError);
  const auto original = carry_out(info.op, request, target);
  if (!original) return lose_memory(range, "n atomic");
  message_arrived();
  replay_.add(Replay::Atomic{expected_psn_, request, *original});
  answer_atomic(expected_psn_, *original, false);
  advance(packet, 1);
}

void Responder::advance(const PacketView& packet, std::uint64_t packets) {
  expected_psn_ += packets;
  const Family family = find_opcode(packet.headers.bth.opcode)->family;
  if (family == Family::ReadRequest || family == Family::Atomic) return;  // answered by their responses
  placed_psn_ = expected_psn_ - 1;
  if (packet.headers.bth.ack_req) acknowledge(Aeth::ack(msn_), placed_psn_);
}

// The peer asked for what it may not have: besides the NAK, this side's program hears of it. IBTA 11.6.3.2.
void Responder::refuse(NakCode code) {
  give_up(code);
  const AsyncType event = code == NakCode::RemoteAccessError ? AsyncType::QpAccessErr : AsyncType::QpReqErr;
  parts_.async_events->push({event, parts_.handle});
}

void Responder::lose_memory(const Reth& reth, const char* what) {
  inbound_.lose_memory(reth, what);
  give_up(NakCode::RemoteOperationalError);
}

// The peer is told why, and the queue pair is done. IBTA 9.7.5.2, 9.9.3.
void Responder::give_up(NakCode code) {
  acknowledge(Aeth::nak(code, msn_), expected_psn_);
  has_failed_ = true;
}

}  // namespace nicless::wire
