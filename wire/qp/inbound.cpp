// SPDX-License-Identifier: MIT
#include "wire/qp/inbound.h"

#include "queue/guarded_copy.h"

namespace nicless::wire {

using queue::WcOpcode;
using queue::WcStatus;
using Kind = Inbound::Outcome::Kind;

namespace {

constexpr Inbound::Outcome kNoAccess{Kind::Refused, NakCode::RemoteAccessError};

}  // namespace

Inbound::Inbound(const QpParts& parts, const QpAttributes& attributes, Reasons& reasons, Peer peer)
    : parts_(parts),
      attributes_(attributes),
      reasons_(reasons),
      peer_(peer),
      place_(receiving_of(parts)),
      cursor_(receive_sge_max(parts)) {
  receive_.reserve(receive_sge_max(parts));
}

std::string Inbound::told(const char* status) const {
  return peer_ == Peer::Hears ? std::string("the sender gets ") + status : "the sender does not hear of it";
}

void Inbound::reset() {
  if (has_receive_ && parts_.own_receives == nullptr) place_.receives->credit().release(1);
  message_ = Message::None;
  has_receive_ = false;
  has_lost_completion_ = false;
}

void Inbound::flush() {
  if (has_receive_) fail_receive(WcStatus::WrFlushErr);
  message_ = Message::None;
}

bool Inbound::is_well_formed(const PacketView& packet, const OpcodeInfo& info) const {
  const std::size_t mtu = attributes_.path_mtu;
  const bool is_part = info.family == Family::Send || info.family == Family::Write;
  const Message kind = info.family == Family::Send ? Message::Send : Message::Write;
  const Message expected = is_part && !info.starts_message() ? kind : Message::None;
  if (message_ != expected) return false;
  if (!is_part) return true;
  if (!info.ends_message()) return packet.payload.size() == mtu;
  if (info.place == Place::Last && packet.payload.empty()) return false;
  return packet.payload.size() <= mtu;
}

Inbound::Outcome Inbound::on_send(const PacketView& packet, const OpcodeInfo& info) {
  if (info.starts_message()) {
    if (!take_receive()) return {Kind::NoReceive};
    received_bytes_ = 0;
    // A bad entry matters only if the message reaches it: usable_length() says up to where.
    static_cast<void>(cursor_.resolve(*place_.regions, place_.list_pd, receive_.sges(), queue::kAccessLocalWrite));
  }
  if (const Outcome outcome = scatter(packet.payload); outcome.kind != Kind::Placed) return outcome;
  message_ = info.ends_message() ? Message::None : Message::Send;
  if (info.has_ieth && !invalidate(packet.headers.ieth.rkey)) return kNoAccess;
  if (info.ends_message()) complete_receive(packet, info, WcOpcode::Recv, received_bytes_);
  return {};
}

// The window that the message invalidates is dead before its completion can be seen. IBTA 9.4.1.1.3.
bool Inbound::invalidate(queue::RKey rkey) {
  const auto done = place_.regions->invalidate({place_.remote_pd, parts_.qpn}, rkey);
  if (done) return true;
  reasons_.add("recv wr_id 0x%llx: the message asks to invalidate rkey 0x%x, which %s; %s",
               static_cast<unsigned long long>(receive_.wr_id), rkey.value(), done.error().why.c_str(),
               told("REM_ACCESS_ERR").c_str());
  return false;
}

// The oldest posted receive, unless one is left over from a message that was dropped.
bool Inbound::take_receive() {
  has_receive_ = has_receive_ || place_.receives->take(receive_);
  return has_receive_;
}

Inbound::Outcome Inbound::scatter(std::span<const std::byte> payload) {
  static_cast<void>(cursor_.refresh(*place_.regions));
  const std::uint64_t end = received_bytes_ + payload.size();
  if (end > cursor_.length()) {
    reasons_.add(
        "recv wr_id 0x%llx: a message of at least %llu bytes does not fit the %llu bytes posted (%zu SGEs); %s",
        static_cast<unsigned long long>(receive_.wr_id), static_cast<unsigned long long>(end),
        static_cast<unsigned long long>(cursor_.length()), receive_.sges().size(), told("REM_INV_REQ_ERR").c_str());
    fail_receive(WcStatus::LocLenErr);
    return {Kind::FailedLocally, NakCode::InvalidRequest};
  }
  const auto fault = end > cursor_.usable_length() ? cursor_.fault() : cursor_.scatter(received_bytes_, payload);
  if (fault) {
    reasons_.add("recv wr_id 0x%llx: %s; completes with LOC_PROT_ERR, %s",
                 static_cast<unsigned long long>(receive_.wr_id), describe(*fault).c_str(), told("REM_OP_ERR").c_str());
    fail_receive(WcStatus::LocProtErr);
    return {Kind::FailedLocally, NakCode::RemoteOperationalError};
  }
  received_bytes_ = end;
  return {};
}

Inbound::Outcome Inbound::on_write(const PacketView& packet, const OpcodeInfo& info) {
  if (info.starts_message()) {
    if (const Outcome begun = begin_write(packet); begun.kind != Kind::Placed) return begun;
  }
  const std::uint64_t end = received_bytes_ + packet.payload.size();
  if (end > write_.length || (info.ends_message() && end != write_.length)) {
    reasons_.add("received a write whose packets do not add up to the %u bytes it announced", write_.length);
    return {Kind::Refused, NakCode::InvalidRequest};
  }
  // The receive that immediate data needs comes first: without it nothing of this packet is done.
  if (info.has_imm && !take_receive()) return {Kind::NoReceive};
  if (const Outcome placed = place_write(packet.payload); placed.kind != Kind::Placed) return placed;
  message_ = info.ends_message() ? Message::None : Message::Write;
  if (info.has_imm) complete_receive(packet, info, WcOpcode::RecvRdmaWithImm, write_.length);
  return {};
}

// The first packet of a write names the whole range, and the whole range is checked. IBTA 9.7.4.1.5. An operation that
// the queue pair is not set up for is no matter of access but an invalid request, as mlx5 says. IBTA 9.9.3.
Inbound::Outcome Inbound::begin_write(const PacketView& packet) {
  write_ = packet.headers.reth;
  received_bytes_ = 0;
  if ((attributes_.access & queue::kAccessRemoteWrite) == 0) {
    reasons_.add("received a write, but the queue pair has no IBV_ACCESS_REMOTE_WRITE; %s",
                 told("REM_INV_REQ_ERR").c_str());
    return {Kind::Refused, NakCode::InvalidRequest};
  }
  if (may_access(write_, queue::kAccessRemoteWrite, " write")) return {};
  return {Kind::Refused, NakCode::RemoteAccessError};
}

bool Inbound::may_access(const Reth& reth, std::uint32_t access, const char* what) {
  if (reth.length == 0) return true;  // touches nothing, so nothing is checked: IBTA 9.7.4.1.5
  return find(reth, access, what) != nullptr;
}

std::byte* Inbound::find(const Reth& reth, std::uint32_t access, const char* what) {
  const queue::Access found =
      place_.regions->find_remote({place_.remote_pd, parts_.qpn}, reth.rkey, reth.address, reth.length, access);
  if (found) return found.pointer;
  reasons_.add("received a%s of %u bytes at 0x%llx with rkey 0x%x: the key %s; %s", what, reth.length,
               static_cast<unsigned long long>(reth.address), reth.rkey.value(), queue::describe(found.fault),
               told("REM_ACCESS_ERR").c_str());
  return nullptr;
}

void Inbound::lose_memory(const Reth& reth, const char* what) {
  reasons_.add("received a%s of %u bytes at 0x%llx with rkey 0x%x: %s; %s", what, reth.length,
               static_cast<unsigned long long>(reth.address), reth.rkey.value(),
               queue::describe(queue::AccessFault::Unmapped), told("REM_OP_ERR").c_str());
  parts_.async_events->push({queue::AsyncType::QpFatal, parts_.handle});
}

Inbound::Outcome Inbound::place_write(std::span<const std::byte> payload) {
  if (payload.empty()) return {};
  const Reth part{write_.address + received_bytes_, write_.rkey, static_cast<std::uint32_t>(payload.size())};
  std::byte* const target = find(part, queue::kAccessRemoteWrite, " write");
  if (target == nullptr) return kNoAccess;  // the region went away half-way
  if (!queue::copy_to(target, payload)) {
    lose_memory(part, " write");
    return {Kind::FailedLocally, NakCode::RemoteOperationalError};
  }
  received_bytes_ += payload.size();
  return {};
}

void Inbound::complete_receive(const PacketView& packet, const OpcodeInfo& info, WcOpcode opcode, std::uint64_t bytes) {
  has_receive_ = false;
  queue::Completion completion;
  completion.wr_id = receive_.wr_id;
  completion.opcode = opcode;
  completion.byte_len = static_cast<std::uint32_t>(bytes);
  completion.flags = info.has_imm ? queue::kWcWithImm : std::uint8_t{0};
  completion.imm_or_key = packet.headers.imm.network_order;
  if (info.has_ieth) {
    completion.flags = queue::kWcWithInv;
    completion.imm_or_key = packet.headers.ieth.rkey.value();
  }
  completion.solicited = packet.headers.bth.solicited;
  completion.qp_num = parts_.qpn;
  completion.src_qp = attributes_.dest_qpn;
  completion.credit = &place_.receives->credit();
  completion.credit_count = 1;
  complete(completion);
}

void Inbound::complete(const queue::Completion& completion) {
  place_.cq->push(completion);
  has_lost_completion_ = place_.cq->has_lost_completion_of(parts_.qpn);
}

void Inbound::fail_receive(WcStatus status) {
  has_receive_ = false;
  queue::Completion completion;
  completion.wr_id = receive_.wr_id;
  completion.status = status;
  completion.opcode = WcOpcode::Recv;
  completion.qp_num = parts_.qpn;
  completion.credit = &place_.receives->credit();
  completion.credit_count = 1;
  complete(completion);
}

}  // namespace nicless::wire
