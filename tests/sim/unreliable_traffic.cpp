// SPDX-License-Identifier: MIT
#include "tests/sim/unreliable_traffic.h"
#include "tests/sim/drain.h"

#include <algorithm>
#include <array>

#include "wire/ud/grh.h"

namespace nicless::sim {

using queue::SendOpcode;
using queue::WcStatus;
using wire::QpState;

namespace {

constexpr std::size_t kReceiveSlackBytes = 1024;  // of one longer than the message, GRH included
constexpr std::size_t kTagBytes = 8;              // a message begins with who sent it and which of his it is
constexpr queue::Duration kRestLimit = std::chrono::seconds(100);
constexpr std::uint32_t kWrongQkey = 0x0bad'0bad;
constexpr std::uint64_t kTurnsMax = 1'000'000;
constexpr std::size_t kPlaceSlackBytes = queue::kSgeMax * kGapMax;

std::uint64_t tag_of(std::size_t from, std::size_t index) {
  return std::uint64_t{from + 1} << 32 | index;
}

}  // namespace

struct UnreliableTraffic::Message {
  SendOpcode opcode = SendOpcode::Send;
  bool signaled = true;
  bool solicited = false;
  bool is_inline = false;
  std::uint32_t imm = 0;  // the tag, where there is no room for it in the message
  std::vector<std::byte> bytes;
  std::vector<Piece> pieces;  // of the source, where the bytes stand
  std::size_t to = 0;         // which end
  bool has_wrong_qkey = false;
  bool has_bad_lkey = false;
  bool is_sent = true;  // false: it completed in error
  std::size_t arrivals = 0;

  bool is_write() const { return opcode == SendOpcode::Write || opcode == SendOpcode::WriteImm; }
  bool has_imm() const { return opcode == SendOpcode::SendImm || opcode == SendOpcode::WriteImm; }
};

struct UnreliableTraffic::End {
  End(World& world, std::size_t index, const SideConfig& config, std::size_t place_bytes, std::size_t places)
      : host(index % 2),
        side(world.engine(host), world.endpoint(host), config, index + 1),
        source(side, places * place_bytes, 0),
        exposed(side, places * place_bytes, queue::kAccessLocalWrite | queue::kAccessRemoteWrite),
        receives(side, config.recv_depth, place_bytes, false) {}
  const std::size_t host;
  Side side;
  Tracked source;   // each message has a place of its own
  Tracked exposed;  // likewise; the peer writes it
  ReceivePool receives;
  std::vector<Message> messages;
  std::size_t posted = 0;          // messages; wr_id is the index
  std::size_t completed = 0;       // messages that have or will never have a completion
  std::size_t newest_arrival = 0;  // of a connection: one past the peer's message that came last
  std::size_t receives_due = 0;    // one for each message to this end
  bool is_flushing = false;        // a send failed: those behind it are flushed until the program resumes
  bool is_broken = false;          // a receive failed: the queue pair is in ERR
  Drain drain;
};

UnreliableTraffic::UnreliableTraffic(const UnreliableConfig& config)
    : config_(config),
      rng_(config.seed),
      world_(config.seed, config.faults),
      place_bytes_(config.packets_max * config.connection.path_mtu + kPlaceSlackBytes + kReceiveSlackBytes) {
  for (std::size_t i = 0; i < (is_datagram() ? 4u : 2u); ++i) {
    ends_.push_back(std::make_unique<End>(world_, i, config.side, place_bytes_, config.messages_each));
  }
  for (std::size_t i = 0; i < ends_.size(); i += 2) {
    const std::uint32_t psn = random_psn(rng_);
    ends_[i]->side.connect(world_.now(), ends_[i + 1]->side, config.connection, psn, psn);
    ends_[i + 1]->side.connect(world_.now(), ends_[i]->side, config.connection, psn, psn);
  }
  for (std::size_t i = 0; i < ends_.size(); ++i) plan(i);
}

UnreliableTraffic::~UnreliableTraffic() = default;

void UnreliableTraffic::plan(std::size_t from) {
  End& end = *ends_[from];
  for (std::size_t i = 0; i < config_.messages_each; ++i) {
    Message message = plan_message(from, i);
    message.pieces =
        random_pieces(rng_, i * place_bytes_, message.bytes.size(), message.is_inline ? 1 : queue::kSgeMax);
    scatter(message.pieces, message.bytes, [&](std::size_t offset, std::span<const std::byte> bytes) {
      std::copy(bytes.begin(), bytes.end(), end.source.buffer().bytes().begin() + static_cast<std::ptrdiff_t>(offset));
    });
    ++ends_[message.to]->receives_due;
    end.messages.push_back(std::move(message));
  }
  end.source.accept({{0, end.source.buffer().bytes().size()}});
}

UnreliableTraffic::Message UnreliableTraffic::plan_message(std::size_t from, std::size_t index) {
  Message message;
  constexpr std::array kOpcodes{SendOpcode::Send, SendOpcode::SendImm, SendOpcode::Write, SendOpcode::WriteImm};
  message.opcode = kOpcodes[rng_.below(is_datagram() ? 2 : 4)];
  message.to = is_datagram() ? rng_.below(static_cast<std::uint32_t>(ends_.size())) : 1 - from;
  message.signaled = config_.side.signal_all || rng_.chance(0.5) || index % 2 == 0;
  message.solicited = rng_.chance(0.3);
  message.imm = static_cast<std::uint32_t>((from + 1) << 24 | index);
  std::size_t length = random_length(rng_, config_.connection.path_mtu, std::max<std::size_t>(config_.packets_max, 2));
  if (is_datagram()) length = std::min<std::size_t>(length, config_.side.port_mtu);
  message.is_inline = config_.side.inline_max > 0 && rng_.chance(0.3);
  if (message.is_inline) length = std::min<std::size_t>(length, config_.side.inline_max);
  if (!message.has_imm()) length = std::max(length, kTagBytes);
  for (std::size_t i = 0; i < length; ++i) message.bytes.push_back(static_cast<std::byte>(rng_.next_u32()));
  const std::uint64_t tag = tag_of(from, index);
  if (length >= kTagBytes) std::copy_n(bytes_of(tag).begin(), kTagBytes, message.bytes.begin());
  message.has_wrong_qkey = is_datagram() && rng_.chance(0.05);
  message.has_bad_lkey = !message.is_inline && length > 0 && rng_.chance(config_.mistakes);
  return message;
}

UnreliableResult UnreliableTraffic::run() {
  try {
    for (auto& end : ends_) {
      while (config_.receives_first && post_recv(*end)) {
      }
    }
    std::uint64_t turns = 0;
    while (!is_everything_posted()) {
      act();
      if (++turns > kTurnsMax) world_.fail("the programs never get rid of their messages");
    }
    world_.run_until_idle(kRestLimit);
    for (auto& end : ends_) poll(*end);
    for (auto& end : ends_) check_at_rest(*end);
    return result_;
  } catch (const Failure& failure) {
    std::string text = to_string(config_) + "\n" + failure.what() + "\n";
    for (auto& end : ends_) {
      for (const std::string& reason : end->side.qp().take_reasons()) text += reason + "\n";
    }
    throw Failure(text);
  }
}

void UnreliableTraffic::act() {
  End& end = *ends_[rng_.below(static_cast<std::uint32_t>(ends_.size()))];
  switch (rng_.below(4)) {
    case 0:
      if (end.drain.is_under_way() || rng_.chance(config_.drains)) end.drain.step(world_, rng_, end.side, end.host);
      if (end.side.qp().state() == QpState::Sqe && rng_.chance(0.3)) resume(end);
      return post_send(end);
    case 1:
      if (!rng_.chance(config_.late_receives)) post_recv(end);
      return;
    case 2:
      return poll(end);
    default:
      for (std::uint32_t steps = rng_.below(6); steps > 0; --steps) world_.step();
      return;
  }
}

bool UnreliableTraffic::is_everything_posted() const {
  return std::all_of(ends_.begin(), ends_.end(),
                     [](const auto& end) { return end->posted == end->messages.size() && !end->drain.is_under_way(); });
}

void UnreliableTraffic::post_send(End& end) {
  if (end.posted == end.messages.size()) return;
  const Message& message = end.messages[end.posted];
  Side& to = ends_[message.to]->side;
  queue::Wqe wqe;
  wqe.wr_id = end.posted;
  wqe.opcode = message.opcode;
  wqe.signaled = message.signaled;
  wqe.solicited = message.solicited;
  wqe.imm_or_key = message.imm;
  wqe.remote_addr = ends_[message.to]->exposed.buffer().address(end.posted * place_bytes_);
  wqe.rkey = ends_[message.to]->exposed.buffer().rkey();
  wqe.datagram.local_gid = end.side.endpoint().address.bytes;
  wqe.datagram.remote_gid = to.endpoint().address.bytes;
  wqe.datagram.remote_qpn = to.qpn();
  wqe.datagram.remote_qkey = message.has_wrong_qkey ? kWrongQkey : config_.connection.qkey;
  std::vector<queue::Sge> sges = end.source.sges(message.pieces);
  if (message.has_bad_lkey) {
    for (queue::Sge& sge : sges) sge.lkey = queue::LKey(sge.lkey.value() ^ 0x10);
  }
  wqe.has_inline_data = message.is_inline;
  if (message.is_inline) {
    wqe.inline_data = message.bytes;
  } else {
    wqe.sges = sges;
  }
  if (!end.side.post_send(world_.now(), wqe)) return;
  ++end.posted;
  ++result_.sent;
  if (!message.has_wrong_qkey && message.opcode != SendOpcode::Write) ++result_.due;
  world_.flush(end.host);
}

// Each takes any message, but the last one of a run that is to end in LOC_LEN_ERR.
bool UnreliableTraffic::post_recv(End& end) {
  const std::size_t index = end.receives.posted();
  if (index == end.receives_due) return false;
  std::size_t length = grh_bytes() + config_.packets_max * config_.connection.path_mtu + rng_.below(900);
  if (config_.is_short && &end == ends_[0].get() && index + 1 == end.receives_due) length = grh_bytes() / 2;
  return end.receives.post(rng_, end.side, length);
}

void UnreliableTraffic::poll(End& end) {
  for (const Wc& wc : end.side.poll_recv()) on_recv_completion(end, wc);
  for (const Wc& wc : end.side.poll_send()) on_send_completion(end, wc);
}

void UnreliableTraffic::on_send_completion(End& end, const Wc& wc) {
  const auto index = static_cast<std::size_t>(wc.wr_id);
  if (index >= end.posted || index < end.completed)
    world_.fail("a send completes twice, or unposted: " + to_string(wc));
  for (; end.completed < index; ++end.completed) {
    if (end.messages[end.completed].signaled || end.is_flushing) world_.fail("a send was skipped by " + to_string(wc));
  }
  Message& message = end.messages[end.completed++];
  const bool is_flushed = end.is_flushing || end.side.qp().state() == QpState::Err;
  if (wc.status == WcStatus::WrFlushErr && is_flushed) {
    message.is_sent = false;
    end.is_flushing = true;
    return;
  }
  if (end.is_flushing) world_.fail("a send behind a failed one is not flushed: " + to_string(wc));
  if (wc.status == WcStatus::LocProtErr && message.has_bad_lkey) {
    message.is_sent = false;
    end.is_flushing = true;
    return;
  }
  if (message.has_bad_lkey || !message.signaled) world_.fail("a send must not succeed like that: " + to_string(wc));
  const auto opcode = message.is_write() ? queue::WcOpcode::RdmaWrite : queue::WcOpcode::Send;
  if (wc != Wc{.wr_id = wc.wr_id, .opcode = opcode})
    world_.fail("a send completes otherwise than it must: " + to_string(wc));
}

// SQE -> RTS: all that was posted before has been flushed.
void UnreliableTraffic::resume(End& end) {
  poll(end);
  if (end.completed != end.posted) world_.fail("in SQE not every send was flushed");
  if (!end.side.to_state(world_.now(), QpState::Rts)) world_.fail("SQE -> RTS was refused");
  end.is_flushing = false;
}

void UnreliableTraffic::on_recv_completion(End& end, const Wc& wc) {
  const std::vector<Piece> pieces = end.receives.take(wc.wr_id);
  if (wc.status == WcStatus::Success) {
    if (end.is_broken) world_.fail("a receive succeeds after a failed one: " + to_string(wc));
    on_message(end, wc, pieces);
  } else {
    const bool is_due = config_.is_short && &end == ends_[0].get();
    const WcStatus expected = end.is_broken ? WcStatus::WrFlushErr : WcStatus::LocLenErr;
    if (!is_due || wc.status != expected) world_.fail("a receive must not fail like that: " + to_string(wc));
    if (end.side.qp().state() != QpState::Err) world_.fail("a receive failed, and the queue pair did not");
    end.is_broken = true;
  }
  // What stands behind the message may be left over from one that came in part.
  end.receives.landing().accept(pieces);
}

void UnreliableTraffic::on_message(End& end, const Wc& wc, const std::vector<Piece>& pieces) {
  std::vector<std::byte> landed;
  for (const Piece& piece : pieces) {
    const auto bytes = end.receives.landing().buffer().bytes().subspan(piece.offset, piece.length);
    landed.insert(landed.end(), bytes.begin(), bytes.end());
  }
  std::uint64_t tag = 0;
  if (wc.flags & queue::kWcWithImm) {
    tag = tag_of((wc.imm >> 24) - 1, wc.imm & 0xffffff);
  } else if (landed.size() >= grh_bytes() + kTagBytes) {
    tag = word_at(std::span(landed).subspan(grh_bytes()));
  }
  const std::size_t from = static_cast<std::size_t>(tag >> 32) - 1;
  const auto index = static_cast<std::size_t>(tag & 0xffffffff);
  if (from >= ends_.size() || index >= ends_[from]->posted) world_.fail("received what nobody sent: " + to_string(wc));
  End& sender = *ends_[from];
  Message& message = sender.messages[index];
  const auto expected = expected_receive(wc.wr_id, sender, message);
  if (wc != expected) world_.fail("received " + to_string(wc) + ", expected " + to_string(expected));
  if (ends_[message.to].get() != &end || message.has_wrong_qkey) world_.fail("received what is not for this end");
  if (message.is_write()) {
    landed.assign(message.bytes.size() + grh_bytes(), {});
    const auto bytes = end.exposed.buffer().bytes().subspan(index * place_bytes_, message.bytes.size());
    std::copy(bytes.begin(), bytes.end(), landed.begin());
  }
  landed.resize(grh_bytes() + message.bytes.size());
  if (!std::equal(message.bytes.begin(), message.bytes.end(),
                  landed.begin() + static_cast<std::ptrdiff_t>(grh_bytes()))) {
    world_.fail("message " + std::to_string(index) + " of end " + std::to_string(from) + " was changed on its way");
  }
  ++result_.arrived;
  ++message.arrivals;
  if (is_datagram()) {
    const std::size_t most = config_.faults.duplicate > 0 ? 2 : 1;
    if (message.arrivals > most) world_.fail("a datagram arrived more often than the network doubles it");
    return;
  }
  if (index < end.newest_arrival) world_.fail("message " + std::to_string(index) + " came again, or out of order");
  end.newest_arrival = index + 1;
}

Wc UnreliableTraffic::expected_receive(std::uint64_t wr_id, End& sender, const Message& message) const {
  Wc wc{.wr_id = wr_id,
        .opcode = message.is_write() ? queue::WcOpcode::RecvRdmaWithImm : queue::WcOpcode::Recv,
        .byte_len = static_cast<std::uint32_t>(grh_bytes() + message.bytes.size())};
  if (message.has_imm()) {
    wc.flags = queue::kWcWithImm;
    wc.imm = message.imm;
  }
  if (is_datagram()) {
    wc.flags |= queue::kWcGrh;
    wc.src_qp = sender.side.qpn().value();
  }
  return wc;
}

void UnreliableTraffic::check_at_rest(End& end) {
  for (std::size_t i = end.completed; i < end.posted; ++i) {
    if (end.messages[i].signaled || end.is_flushing) world_.fail("send " + std::to_string(i) + " has no completion");
  }
  if (!end.side.send_queue().empty()) world_.fail("at rest the send queue is not empty");
  if (end.is_broken && end.receives.outstanding() > 0) world_.fail("not every receive was flushed");
  for (std::size_t i = 0; i < end.messages.size(); ++i) {
    const Message& message = end.messages[i];
    if (!message.is_sent && message.arrivals > 0) world_.fail("a send that failed arrived: " + std::to_string(i));
    if (message.is_write()) expect_written(*ends_[message.to], i * place_bytes_, message);
  }
  end.receives.accept_partial(1);
  for (Tracked* memory : {&end.source, &end.receives.landing()}) {
    if (memory->first_difference()) world_.fail("memory was written that must not be");
  }
  if (!is_datagram() && ends_[end.host ^ 1]->exposed.first_difference()) world_.fail("a write went elsewhere");
}

// As many packets of it as came before the first that was lost: all of them or the first few, each of them whole.
void UnreliableTraffic::expect_written(End& target, std::size_t offset, const Message& message) {
  if (!message.is_sent) return;
  const std::size_t mtu = config_.connection.path_mtu;
  for (std::size_t at = 0; at < message.bytes.size(); at += mtu) {
    const auto part = std::span(message.bytes).subspan(at, std::min(mtu, message.bytes.size() - at));
    if (!target.exposed.holds(offset + at, part)) return;
    target.exposed.expect(offset + at, part);
  }
}

}  // namespace nicless::sim
