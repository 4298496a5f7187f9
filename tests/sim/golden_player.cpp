// SPDX-License-Identifier: MIT
#include "tests/sim/golden_player.h"

#include <algorithm>
#include <cstring>

namespace nicless::sim {

namespace {

wire::Transport transport_of(wire::Service service) {
  if (service == wire::Service::Uc) return wire::Transport::Uc;
  return service == wire::Service::Ud ? wire::Transport::Ud : wire::Transport::Rc;
}

using queue::SendOpcode;
using wire::Family;

constexpr std::size_t kReceiveBytes = 16 * 1024;  // what the servers of the captures posted at most
constexpr std::uint32_t kDepth = 1024;
constexpr std::size_t kMemoryBytes = 64 * 1024;
constexpr std::uint64_t kWordBytes = 8;

const wire::OpcodeInfo& info_of(const Packet& packet) {
  return *wire::find_opcode(packet.headers.bth.opcode);
}

SideConfig side_of(const GoldenFlow& flow) {
  return {.send_depth = kDepth, .recv_depth = kDepth, .transport = transport_of(flow.service)};
}

// Both ends' numbers are those of the capture's requests; the direction that is not played has none.
ConnectionConfig connection_of(const GoldenFlow& flow, ConnectionConfig config = {}) {
  config.path_mtu = flow.path_mtu;
  config.a_psn = flow.first_psn();
  if (flow.service == wire::Service::Ud) config.qkey = flow.events.front().packet.headers.deth.qkey;
  for (const auto& event : flow.events) {
    const wire::Aeth& aeth = event.packet.headers.aeth;
    if (event.is_response && aeth.kind() == wire::Aeth::Kind::Rnr) config.min_rnr_timer = aeth.rnr_timer();
  }
  return config;
}

std::uint32_t next(std::uint32_t psn, std::uint64_t packets = 1) {
  return static_cast<std::uint32_t>(psn + packets) & wire::Psn::kMask;
}

SendOpcode opcode_of(const wire::OpcodeInfo& last) {
  switch (last.family) {
    case Family::Write:
      return last.has_imm ? SendOpcode::WriteImm : SendOpcode::Write;
    case Family::ReadRequest:
      return SendOpcode::Read;
    case Family::Atomic:
      return last.op == wire::Op::CompareSwap ? SendOpcode::CompareSwap : SendOpcode::FetchAdd;
    default:
      if (last.has_ieth) return SendOpcode::SendInv;
      return last.has_imm ? SendOpcode::SendImm : SendOpcode::Send;
  }
}

}  // namespace

ResponderPlayer::ResponderPlayer(const GoldenFlow& flow)
    : flow_(flow), pair_(side_of(flow), connection_of(flow)), landing_(pair_.b.make_buffer(kReceiveBytes)) {
  make_regions();
}

void ResponderPlayer::make_regions() {
  name_regions();
  for (auto& [rkey, region] : regions_) {
    region.start &= ~(kWordBytes - 1);
    region.words.assign((region.end - region.start) / kWordBytes + 2, 0);
    region.ours = register_region(region);
  }
  for (auto event = flow_.events.rbegin(); event != flow_.events.rend(); ++event) {
    const wire::Headers& headers = event->packet.headers;
    if (event->is_response || !info_of(event->packet).has_atomic) continue;
    preset(headers.atomic.address, headers.atomic.rkey, headers.bth.psn.value());
  }
}

void ResponderPlayer::name_regions() {
  for (const auto& event : flow_.events) {
    const wire::Headers& headers = event.packet.headers;
    if (event.is_response || was_refused(headers.bth.psn.value())) continue;
    if (info_of(event.packet).has_reth) widen(headers.reth.rkey, headers.reth.address, headers.reth.length);
    if (info_of(event.packet).has_atomic) widen(headers.atomic.rkey, headers.atomic.address, kWordBytes);
  }
  for (const auto& event : flow_.events) {
    const auto found = regions_.find(event.packet.headers.ieth.rkey);
    if (info_of(event.packet).has_ieth && found != regions_.end()) found->second.is_window = true;
  }
}

queue::RKey ResponderPlayer::register_region(Region& region) {
  constexpr std::uint32_t kRemote = queue::kAccessRemoteWrite | queue::kAccessRemoteRead | queue::kAccessRemoteAtomic;
  constexpr std::uint32_t kLocal = queue::kAccessLocalWrite | queue::kAccessMwBind;
  constexpr queue::PdId kPd{1};
  queue::MrTable& table = pair_.b.regions();
  auto* const host = reinterpret_cast<std::byte*>(region.words.data());
  const std::uint64_t length = region.end - region.start;
  const auto keys = table.add(kPd, host, region.start, length, kRemote | kLocal);
  if (!region.is_window) return keys->rkey;
  const queue::RKey rkey = *table.add_window(kPd, queue::WindowType::Type2);
  const auto bound = table.bind({kPd, pair_.b.qpn()}, {rkey, keys->lkey, region.start, length, kRemote});
  if (!bound) throw Failure(bound.error().why);
  return rkey;
}

void ResponderPlayer::widen(queue::RKey rkey, std::uint64_t address, std::uint64_t length) {
  auto [found, is_new] = regions_.try_emplace(rkey);
  Region& region = found->second;
  region.start = is_new ? address : std::min(region.start, address);
  region.end = std::max({region.end, address + length, address + 1});
}

// What an atomic found there, before all others: they are gone through from the last to the first.
void ResponderPlayer::preset(std::uint64_t address, queue::RKey rkey, std::uint32_t psn) {
  for (const auto& event : flow_.events) {
    if (!event.is_response || event.packet.headers.bth.psn.value() != psn) continue;
    if (!info_of(event.packet).has_atomic_ack) continue;
    Region& region = regions_.at(rkey);
    region.words[(address - region.start) / kWordBytes] = event.packet.headers.atomic_ack.original;
    return;
  }
}

bool ResponderPlayer::was_refused(std::uint32_t psn) const {
  return std::any_of(flow_.events.begin(), flow_.events.end(), [&](const auto& event) {
    const wire::Aeth& aeth = event.packet.headers.aeth;
    return event.is_response && event.packet.headers.bth.psn.value() == psn &&
           aeth == wire::Aeth::nak(wire::NakCode::RemoteAccessError, aeth.msn);
  });
}

bool ResponderPlayer::is_rnr_next(std::size_t event) const {
  for (std::size_t i = event + 1; i < flow_.events.size(); ++i) {
    if (flow_.events[i].is_response) return flow_.events[i].packet.headers.aeth.kind() == wire::Aeth::Kind::Rnr;
  }
  return false;
}

Packet ResponderPlayer::to_ours(Packet packet) const {
  packet.headers.bth.dest_qp = pair_.b.qpn();
  wire::Headers& headers = packet.headers;
  for (queue::RKey* rkey : {&headers.reth.rkey, &headers.atomic.rkey, &headers.ieth.rkey}) {
    const auto found = regions_.find(*rkey);
    *rkey = found == regions_.end() ? queue::RKey(0) : found->second.ours;
  }
  return packet;
}

std::vector<std::string> ResponderPlayer::play() {
  std::vector<std::string> lines;
  std::size_t posted = 0;
  const queue::Sge list = landing_.sge(0, kReceiveBytes);
  for (std::size_t i = 0; i < flow_.events.size(); ++i) {
    if (flow_.events[i].is_response) continue;
    if (posted == received_.size() && !is_rnr_next(i) && pair_.b.post_recv(posted, {&list, 1})) ++posted;
    pair_.give(pair_.b, to_ours(flow_.events[i].packet));
    for (const Packet& packet : pair_.take(pair_.b)) lines.push_back(to_line(packet));
    for (const Wc& wc : pair_.b.poll_recv()) received_.push_back(wc);
  }
  return lines;
}

RequesterPlayer::RequesterPlayer(const GoldenFlow& flow, const ConnectionConfig& config)
    : flow_(flow), pair_(side_of(flow), connection_of(flow, config)), memory_(pair_.a.make_buffer(kMemoryBytes)) {
  for (const auto& event : flow.events) {
    if (!event.is_response) by_psn_.try_emplace(event.packet.headers.bth.psn.value(), &event.packet);
  }
  find_messages();
}

void RequesterPlayer::find_messages() {
  std::uint32_t psn = flow_.first_psn();
  while (by_psn_.contains(psn)) {
    Message message = message_at(psn, psn);
    messages_.push_back(std::move(message));
  }
}

RequesterPlayer::Message RequesterPlayer::message_at(std::uint32_t psn, std::uint32_t& next_psn) const {
  Message message;
  message.first_psn = psn;
  const Packet* packet = by_psn_.at(psn);
  const wire::Headers& first = packet->headers;
  queue::Wqe& wqe = message.wqe;
  const bool is_atomic = info_of(*packet).has_atomic;
  wqe.remote_addr = is_atomic ? first.atomic.address : first.reth.address;
  wqe.rkey = is_atomic ? first.atomic.rkey : first.reth.rkey;
  const bool is_swap = info_of(*packet).op == wire::Op::CompareSwap;
  wqe.compare_add = is_swap ? first.atomic.compare : first.atomic.swap_add;
  wqe.swap = first.atomic.swap_add;
  std::uint64_t packets = 0;
  for (;; ++packets) {
    packet = by_psn_.at(next(psn, packets));
    message.bytes.insert(message.bytes.end(), packet->payload.begin(), packet->payload.end());
    if (info_of(*packet).ends_message()) break;
  }
  wqe.opcode = opcode_of(info_of(*packet));
  wqe.solicited = packet->headers.bth.solicited;
  wqe.imm_or_key = info_of(*packet).has_ieth ? packet->headers.ieth.rkey.value() : packet->headers.imm.network_order;
  if (is_atomic) message.bytes.resize(kWordBytes);
  if (wqe.opcode == SendOpcode::Read) {
    message.bytes.resize(first.reth.length);
    packets = (std::max<std::uint64_t>(first.reth.length, 1) - 1) / flow_.path_mtu;
  }
  next_psn = next(psn, packets + 1);
  return message;
}

void RequesterPlayer::post(std::size_t index) {
  const Message& message = messages_[index];
  queue::Wqe wqe = message.wqe;
  wqe.wr_id = index;
  const queue::Sge list = memory_.sge(0, message.bytes.size());
  if (!message.bytes.empty()) wqe.sges = {&list, 1};
  wqe.datagram.local_gid = pair_.a.endpoint().address.bytes;
  wqe.datagram.remote_gid = pair_.b.endpoint().address.bytes;
  wqe.datagram.remote_qpn = pair_.b.qpn();
  wqe.datagram.remote_qkey = by_psn_.at(message.first_psn)->headers.deth.qkey;
  if (auto result = pair_.a.post_send(pair_.now, wqe); !result) throw Failure(result.error().why);
}

void RequesterPlayer::take(std::vector<std::string>& lines) {
  for (const Packet& packet : pair_.take(pair_.a)) {
    ++sent_[packet.headers.bth.psn.value()];
    lines.push_back(to_line(packet));
  }
  for (const Wc& wc : pair_.a.poll_send()) completed_.push_back(wc);
}

std::vector<std::string> RequesterPlayer::play(bool is_doubled) {
  std::vector<std::string> lines;
  std::map<std::uint32_t, std::size_t> seen;
  for (const auto& event : flow_.events) {
    const std::uint32_t psn = event.packet.headers.bth.psn.value();
    if (event.is_response) {
      Packet packet = event.packet;
      packet.headers.bth.dest_qp = pair_.a.qpn();
      pair_.give(pair_.a, packet);
    } else {
      while (posted_ < messages_.size() &&
             wire::distance(wire::Psn(messages_[posted_].first_psn), wire::Psn(psn)) >= 0) {
        post(posted_++);
        take(lines);
      }
      if (++seen[psn] > sent_[psn] && !is_doubled && pair_.a.engine().next_deadline()) pair_.expire(pair_.a);
    }
    take(lines);
  }
  return lines;
}

void RequesterPlayer::give_up() {
  std::vector<std::string> lines;
  while (pair_.a.engine().next_deadline()) {
    pair_.expire(pair_.a);
    take(lines);
  }
}

}  // namespace nicless::sim
