// SPDX-License-Identifier: MIT
#include "wire/engine.h"

#include <algorithm>
#include <cerrno>

#include "queue/check.h"
#include "wire/packet/icrc.h"

namespace nicless::wire {

namespace {

// The default partition, as full or limited member: the top bit says which and does not take part. IBTA 10.9.1.
constexpr std::uint16_t kPkeyMask = 0x7fff;

void add_counters_of(const QueuePair& queue_pair, QpCounters& to) {
  if (const QpCounters* counters = queue_pair.find_counters()) add(*counters, to);
}

}  // namespace

Engine::Engine(std::uint16_t udp_port, Addressing addressing) : udp_port_(udp_port), addressing_(addressing) {}

Engine::~Engine() = default;

queue::Result<queue::Qpn> Engine::reserve_qpn() {
  auto index = static_cast<std::uint32_t>(slots_.size());
  const bool is_begun =
      index < addressing_.queue_pairs_per_port() && addressing_.qpn(udp_port_, index) != kMulticastQpn;
  if (is_begun) {
    slots_.emplace_back();
  } else if (!freed_.empty()) {
    index = freed_.front();
    freed_.pop_front();
  } else {
    return queue::error(ENOMEM, "all queue pair numbers of this port are taken");
  }
  return addressing_.qpn(udp_port_, index);
}

void Engine::add(queue::Qpn qpn, QueuePair& queue_pair) {
  const std::uint32_t index = reserved_index(qpn);
  NICLESS_CHECK(slots_[index].queue_pair == nullptr);
  slots_[index].queue_pair = &queue_pair;
  mark_ready(index);
}

void Engine::remove(queue::Qpn qpn) {
  const std::uint32_t index = reserved_index(qpn);
  // A place in ready_ stays behind: next_datagram skips an empty slot, and a new queue pair may inherit the place.
  deadlines_.erase(index);
  if (slots_[index].queue_pair != nullptr) add_counters_of(*slots_[index].queue_pair, removed_counters_);
  slots_[index].queue_pair = nullptr;
  NICLESS_DCHECK(std::find(freed_.begin(), freed_.end(), index) == freed_.end());
  freed_.push_back(index);
}

void Engine::on_datagram(queue::Instant now, const InDatagram& datagram) {
  ++counters_.datagrams_in;
  const Decoded decoded = decode(datagram.bytes);
  if (!decoded) return count(decoded.error);
  if (!check_icrc(datagram).good) return count(DecodeError::BadIcrc);
  const Bth& bth = decoded.packet.headers.bth;
  if ((bth.pkey & kPkeyMask) != kPkeyMask) {
    ++counters_.bad_pkey;
    return;
  }
  if (bth.dest_qp == kGsiQpn) return gsi_.on_packet(decoded.packet, from_where_to_answer(datagram));
  if (bth.dest_qp == kMulticastQpn) return on_multicast(now, decoded.packet, datagram);
  Slot* slot = find(bth.dest_qp);
  if (slot == nullptr) {
    ++counters_.unknown_qpn;
    return;
  }
  slot->queue_pair->on_packet(now, decoded.packet, datagram);
  mark_ready(index_of(*slot));
}

void Engine::on_multicast(queue::Instant now, const PacketView& packet, const InDatagram& datagram) {
  const Gid& group = datagram.to.address;
  if (!multicast_.has(group)) ++counters_.unknown_qpn;
  multicast_.for_each(group, packet.headers.deth.src_qp, datagram.from.address, [&](queue::Qpn qpn) {
    Slot* slot = find(qpn);
    if (slot != nullptr) slot->queue_pair->on_packet(now, packet, datagram);
  });
}

void Engine::on_post(queue::Instant now, queue::Qpn qpn) {
  Slot* slot = find(qpn);
  if (slot == nullptr) return;
  slot->queue_pair->on_post(now);
  mark_ready(index_of(*slot));
}

void Engine::on_deadline(queue::Instant now) {
  refresh_deadlines();
  while (const auto index = deadlines_.due(now)) {
    deadlines_.set(*index, std::nullopt);  // until it is asked again
    slots_[*index].queue_pair->on_deadline(now);
    mark_ready(*index);
  }
}

bool Engine::next_datagram(queue::Instant now, OutDatagram& out) {
  if (!gsi_.next_datagram(out) && !next_of_ready(now, out)) return false;
  out.from.port = addressing_.source_port(udp_port_, out.from.port);
  ++counters_.datagrams_out;
  return true;
}

bool Engine::next_of_ready(queue::Instant now, OutDatagram& out) {
  while (!ready_.empty()) {
    const std::uint32_t index = ready_.front();
    Slot& slot = slots_[index];
    if (burst_ < kBurstMax && slot.queue_pair != nullptr && slot.queue_pair->next_datagram(now, out)) {
      out.to.port = addressing_.udp_port_of(out.dest_qp);
      ++burst_;
      if (!slot.has_sent) sent_.push_back(index);
      slot.has_sent = true;
      return true;
    }
    ready_.pop_front();
    slot.is_ready = false;
    refresh_deadline(index);
    if (burst_ == kBurstMax) mark_ready(index);  // may have more: at the end of the line
    burst_ = 0;
  }
  return false;
}

EngineCounters Engine::counters() const {
  EngineCounters counters = counters_;
  counters.bad_mad = gsi_.dropped();
  return counters;
}

QpCounters Engine::queue_pair_counters() const {
  QpCounters counters = removed_counters_;
  for (const Slot& slot : slots_) {
    if (slot.queue_pair != nullptr) add_counters_of(*slot.queue_pair, counters);
  }
  return counters;
}

std::optional<queue::Instant> Engine::next_deadline() {
  refresh_deadlines();
  return deadlines_.next();
}

// Whoever was called since it was last asked stands in ready_, or has just left it.
void Engine::refresh_deadlines() {
  for (const std::uint32_t index : ready_) refresh_deadline(index);
}

void Engine::refresh_deadline(std::uint32_t index) {
  const QueuePair* const queue_pair = slots_[index].queue_pair;
  if (queue_pair != nullptr) deadlines_.set(index, queue_pair->next_deadline());
}

void Engine::on_sent() {
  for (const std::uint32_t index : sent_) {
    slots_[index].has_sent = false;
    if (slots_[index].queue_pair != nullptr) slots_[index].queue_pair->on_sent();
  }
  sent_.clear();
}

InDatagram Engine::from_where_to_answer(InDatagram datagram) const {
  if (const auto port = addressing_.answers_port()) datagram.from.port = *port;
  return datagram;
}

std::uint32_t Engine::reserved_index(queue::Qpn qpn) const {
  const auto index = addressing_.index(udp_port_, qpn);
  NICLESS_CHECK(index && *index < slots_.size());
  return *index;
}

Engine::Slot* Engine::find(queue::Qpn qpn) {
  const auto index = addressing_.index(udp_port_, qpn);
  if (!index || *index >= slots_.size() || slots_[*index].queue_pair == nullptr) return nullptr;
  return &slots_[*index];
}

void Engine::mark_ready(std::uint32_t index) {
  if (slots_[index].is_ready) return;
  slots_[index].is_ready = true;
  ready_.push_back(index);
}

void Engine::count(DecodeError error) {
  switch (error) {
    case DecodeError::None:
      return;
    case DecodeError::Truncated:
      ++counters_.truncated;
      return;
    case DecodeError::BadVersion:
      ++counters_.bad_version;
      return;
    case DecodeError::UnknownOpcode:
      ++counters_.unknown_opcode;
      return;
    case DecodeError::BadPad:
      ++counters_.bad_pad;
      return;
    case DecodeError::BadIcrc:
      ++counters_.bad_icrc;
      return;
  }
}

}  // namespace nicless::wire
