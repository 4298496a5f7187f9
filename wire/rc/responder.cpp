// SPDX-License-Identifier: MIT
// Requests: what arrives. What is owed in return is in responder_replies.cpp.
#include "wire/rc/responder.h"

#include <algorithm>

#include "queue/check.h"

namespace nicless::wire {

using queue::AsyncType;
using queue::WcOpcode;
using queue::WcStatus;

namespace {

bool starts_message(const OpcodeInfo& info) {
  return info.place == Place::First || info.place == Place::Only;
}
bool ends_message(const OpcodeInfo& info) {
  return info.place == Place::Last || info.place == Place::Only;
}

}  // namespace

Responder::Responder(const QpParts& parts, const QpAttributes& attributes, Reasons& reasons)
    : parts_(parts), attributes_(attributes), reasons_(reasons) {}

void Responder::start() {
  expected_psn_ = (std::uint64_t{1} << 24) + (attributes_.rq_psn & Psn::kMask);
  msn_ = 0;
  gap_reported_ = false;
  has_failed_ = false;
  message_ = Message::None;
  has_receive_ = false;
  replay_.start(attributes_.max_dest_rd_atomic);
  read_replies_.clear();
  acknowledge_.reset();
}

void Responder::on_request(queue::Instant, const PacketView& packet) {
  if (has_failed_) return;
  const OpcodeInfo& info = *find_opcode(packet.headers.bth.opcode);
  const std::int64_t unwrapped = unwrap(static_cast<std::int64_t>(expected_psn_), packet.headers.bth.psn);
  const auto psn = static_cast<std::uint64_t>(unwrapped);
  if (unwrapped < 0 || psn < expected_psn_) return on_duplicate(packet, info, psn);
  if (psn > expected_psn_) return on_out_of_sequence();

  gap_reported_ = false;
  if (!is_well_formed(packet, info)) {
    reasons_.add("received %s of %zu bytes where the message or the path MTU of %u does not allow it", info.name,
                 packet.payload.size(), unsigned{attributes_.path_mtu});
    return refuse(NakCode::InvalidRequest);
  }
  switch (info.family) {
    case Family::Send:
      return on_send(packet, info);
    case Family::Write:
      return on_write(packet, info);
    case Family::ReadRequest:
      return on_read(packet);
    default:
      reasons_.add("received %s, which this queue pair does not answer", info.name);
      return refuse(NakCode::InvalidRequest);
  }
}

// A message goes on with the kind it began with, and all its packets but the last are full. IBTA 9.7.4.1.
bool Responder::is_well_formed(const PacketView& packet, const OpcodeInfo& info) const {
  const std::size_t mtu = attributes_.path_mtu;
  const bool is_part = info.family == Family::Send || info.family == Family::Write;
  const Message kind = info.family == Family::Send ? Message::Send : Message::Write;
  const Message expected = is_part && !starts_message(info) ? kind : Message::None;
  if (message_ != expected || info.has_ieth) return false;
  if (!is_part) return true;
  if (!ends_message(info)) return packet.payload.size() == mtu;
  if (info.place == Place::Last && packet.payload.empty()) return false;
  return packet.payload.size() <= mtu;
}

// What was done already is acknowledged again, never done again; a read is answered again. IBTA 9.7.5.1.2.
void Responder::on_duplicate(const PacketView& packet, const OpcodeInfo& info, std::uint64_t psn) {
  if (info.family == Family::ReadRequest) {
    if (replay_.find(psn, packet.headers.reth, attributes_.path_mtu)) answer_read(psn, packet.headers.reth, true);
    return;
  }
  // A NAK that is still owed says more than an acknowledgement would.
  if (!acknowledge_) acknowledge(Aeth::ack(msn_), expected_psn_ - 1);
}

void Responder::on_out_of_sequence() {
  if (gap_reported_) return;
  gap_reported_ = true;
  acknowledge(Aeth::nak(NakCode::PsnSequenceError, msn_), expected_psn_);
}

void Responder::on_send(const PacketView& packet, const OpcodeInfo& info) {
  if (starts_message(info)) {
    if (!take_receive()) return;
    received_bytes_ = 0;
    // A bad entry matters only if the message reaches it: usable_length() says up to where.
    static_cast<void>(cursor_.resolve(*parts_.regions, parts_.pd, receive_.sges(), queue::kAccessLocalWrite));
  }
  if (!scatter(packet.payload)) return;
  message_ = Message::Send;
  if (ends_message(info)) {
    message_ = Message::None;
    complete_receive(packet, info, WcOpcode::Recv, received_bytes_);
    message_arrived();
  }
  advance(packet, 1);
}

// Takes the oldest posted receive for the message that begins here; without one the peer is told to try again later.
bool Responder::take_receive() {
  if (!parts_.receives->take(receive_)) {
    gap_reported_ = true;  // the packets behind this one are dropped without a further NAK
    acknowledge(Aeth::rnr(attributes_.min_rnr_timer, msn_), expected_psn_);
    return false;
  }
  has_receive_ = true;
  return true;
}

bool Responder::scatter(std::span<const std::byte> payload) {
  static_cast<void>(cursor_.refresh(*parts_.regions));
  const std::uint64_t end = received_bytes_ + payload.size();
  if (end > cursor_.length()) {
    reasons_.add(
        "recv wr_id 0x%llx: a message of at least %llu bytes does not fit the %llu bytes posted (%u SGEs); the "
        "sender gets REM_INV_REQ_ERR",
        static_cast<unsigned long long>(receive_.wr_id), static_cast<unsigned long long>(end),
        static_cast<unsigned long long>(cursor_.length()), receive_.sge_count);
    fail_receive(WcStatus::LocLenErr);
    give_up(NakCode::InvalidRequest);
    return false;
  }
  if (end > cursor_.usable_length()) {
    reasons_.add("recv wr_id 0x%llx: %s; completes with LOC_PROT_ERR, the sender gets REM_OP_ERR",
                 static_cast<unsigned long long>(receive_.wr_id), describe(*cursor_.fault()).c_str());
    fail_receive(WcStatus::LocProtErr);
    give_up(NakCode::RemoteOperationalError);
    return false;
  }
  cursor_.scatter(received_bytes_, payload);
  received_bytes_ = end;
  return true;
}

void Responder::on_write(const PacketView& packet, const OpcodeInfo& info) {
  if (starts_message(info) && !begin_write(packet)) return;
  const std::uint64_t end = received_bytes_ + packet.payload.size();
  if (end > write_.length || (ends_message(info) && end != write_.length)) {
    reasons_.add("received a write whose packets do not add up to the %u bytes it announced", write_.length);
    return refuse(NakCode::InvalidRequest);
  }
  // The receive that immediate data needs comes first: without it nothing of this packet is done.
  if (info.has_imm && !take_receive()) return;
  if (!place_write(packet.payload)) return;
  message_ = ends_message(info) ? Message::None : Message::Write;
  if (ends_message(info)) {
    if (info.has_imm) complete_receive(packet, info, WcOpcode::RecvRdmaWithImm, write_.length);
    message_arrived();
  }
  advance(packet, 1);
}

// The first packet of a write names the whole range, and the whole range is checked. IBTA 9.7.4.1.5.
bool Responder::begin_write(const PacketView& packet) {
  write_ = packet.headers.reth;
  received_bytes_ = 0;
  if (!(attributes_.access & queue::kAccessRemoteWrite)) {
    reasons_.add("received a write, but the queue pair has no IBV_ACCESS_REMOTE_WRITE");
    refuse(NakCode::RemoteAccessError);
    return false;
  }
  return check_remote(write_, queue::kAccessRemoteWrite, "write");
}

bool Responder::check_remote(const Reth& reth, std::uint32_t access, const char* what) {
  if (reth.length == 0) return true;  // touches nothing, so nothing is checked: IBTA 9.7.4.1.5
  const queue::Access found = parts_.regions->find_remote(parts_.pd, reth.rkey, reth.address, reth.length, access);
  if (found) return true;
  reasons_.add("received a %s of %u bytes at 0x%llx with rkey 0x%x: %s; the peer gets REM_ACCESS_ERR", what,
               reth.length, static_cast<unsigned long long>(reth.address), reth.rkey.value(),
               queue::describe(found.fault));
  refuse(NakCode::RemoteAccessError);
  return false;
}

bool Responder::place_write(std::span<const std::byte> payload) {
  if (payload.empty()) return true;
  const Reth part{write_.address + received_bytes_, write_.rkey, static_cast<std::uint32_t>(payload.size())};
  const queue::Access found =
      parts_.regions->find_remote(parts_.pd, part.rkey, part.address, part.length, queue::kAccessRemoteWrite);
  if (!found) return check_remote(part, queue::kAccessRemoteWrite, "write");  // the region went away half-way
  queue::copy_last_byte_last(found.pointer, payload);
  received_bytes_ += payload.size();
  return true;
}

void Responder::on_read(const PacketView& packet) {
  const Reth& reth = packet.headers.reth;
  if (!(attributes_.access & queue::kAccessRemoteRead)) {
    reasons_.add("received a read, but the queue pair has no IBV_ACCESS_REMOTE_READ");
    return refuse(NakCode::RemoteAccessError);
  }
  const bool is_too_many = is_one_read_too_many();
  if (is_too_many || reth.length > queue::kMessageBytesMax) {
    reasons_.add(is_too_many ? "received more reads at once than max_dest_rd_atomic (%u) allows"
                             : "received a read of more than 2^31 bytes (max_dest_rd_atomic %u)",
                 unsigned{attributes_.max_dest_rd_atomic});
    return refuse(NakCode::InvalidRequest);
  }
  if (!check_remote(reth, queue::kAccessRemoteRead, "read")) return;
  message_arrived();
  replay_.add({expected_psn_, packets_for(reth.length, attributes_.path_mtu), reth});
  answer_read(expected_psn_, reth, false);
  advance(packet, packets_for(reth.length, attributes_.path_mtu));
}

void Responder::complete_receive(const PacketView& packet, const OpcodeInfo& info, WcOpcode opcode,
                                 std::uint64_t bytes) {
  has_receive_ = false;
  queue::Completion completion;
  completion.wr_id = receive_.wr_id;
  completion.opcode = opcode;
  completion.byte_len = static_cast<std::uint32_t>(bytes);
  completion.flags = info.has_imm ? queue::kWcWithImm : std::uint8_t{0};
  completion.imm_or_key = packet.headers.imm.network_order;
  completion.solicited = packet.headers.bth.solicited;
  completion.qp_num = parts_.qpn;
  completion.src_qp = attributes_.dest_qpn;
  completion.credit = &parts_.receives->credit();
  completion.credit_count = 1;
  parts_.recv_cq->push(completion);
}

void Responder::fail_receive(WcStatus status) {
  has_receive_ = false;
  queue::Completion completion;
  completion.wr_id = receive_.wr_id;
  completion.status = status;
  completion.opcode = WcOpcode::Recv;
  completion.qp_num = parts_.qpn;
  completion.credit = &parts_.receives->credit();
  completion.credit_count = 1;
  parts_.recv_cq->push(completion);
}

void Responder::flush() {
  if (has_receive_) fail_receive(WcStatus::WrFlushErr);
  message_ = Message::None;
}

void Responder::advance(const PacketView& packet, std::uint64_t packets) {
  expected_psn_ += packets;
  const bool is_read = packet.headers.bth.opcode == opcode_of(Service::Rc, Op::ReadRequest);
  if (packet.headers.bth.ack_req && !is_read) acknowledge(Aeth::ack(msn_), expected_psn_ - 1);
}

// The peer asked for what it may not have: besides the NAK, this side's program hears of it. IBTA 11.6.3.2.
void Responder::refuse(NakCode code) {
  give_up(code);
  const AsyncType event = code == NakCode::RemoteAccessError ? AsyncType::QpAccessErr : AsyncType::QpReqErr;
  parts_.async_events->push({event, parts_.handle});
}

// The peer is told why, and the queue pair is done. IBTA 9.7.5.2, 9.9.3.
void Responder::give_up(NakCode code) {
  acknowledge(Aeth::nak(code, msn_), expected_psn_);
  has_failed_ = true;
}

}  // namespace nicless::wire
