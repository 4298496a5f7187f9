// SPDX-License-Identifier: MIT
#include "tests/sim/traffic.h"

#include <algorithm>
#include <array>
#include <optional>

namespace nicless::sim {

namespace {

using queue::SendOpcode;
using queue::WcStatus;
using std::chrono::microseconds;

constexpr std::size_t kSharedBytes = 128 * 1024;
constexpr std::size_t kSlackBytes = 2048;  // of a landing slot, for gaps and receives longer than the message
constexpr std::size_t kGapMax = 16;        // bytes between the pieces of a list
constexpr queue::Duration kRestLimit = std::chrono::seconds(3000);
constexpr std::uint64_t kTurnsMax = 5'000'000;

std::uint8_t any_of(queue::Rng& rng, std::initializer_list<int> values) {
  return static_cast<std::uint8_t>(*(values.begin() + rng.below(static_cast<std::uint32_t>(values.size()))));
}

wire::LinkConfig random_faults(queue::Rng& rng) {
  wire::LinkConfig faults;
  faults.latency = microseconds(1 + rng.below(50));
  faults.jitter = rng.chance(0.5) ? microseconds(rng.below(20)) : microseconds(0);
  const auto maybe = [&](double most) { return rng.chance(0.6) ? most * rng.below(1000) / 1000 : 0.0; };
  faults.loss = maybe(0.08);
  faults.duplicate = maybe(0.08);
  faults.reorder = maybe(0.05);
  faults.reorder_delay = microseconds(1 + rng.below(300));
  faults.corrupt = maybe(0.03);
  if (rng.chance(0.3)) {
    faults.bytes_per_second = 50'000'000 + rng.below(1'000'000'000);
    faults.queue_bytes = 64 * 1024 + rng.below(256 * 1024);
  }
  return faults;
}

std::uint32_t random_psn(queue::Rng& rng) {
  return rng.chance(0.7) ? (0xffffff - rng.below(200)) & 0xffffff : rng.next_u32() & 0xffffff;
}

}  // namespace

TrafficConfig TrafficConfig::of(std::uint64_t seed) {
  queue::Rng rng(seed ^ 0x7261666669637400);
  TrafficConfig config;
  config.pair.seed = seed;
  config.pair.faults = rng.chance(0.15) ? wire::LinkConfig{} : random_faults(rng);
  config.pair.side.send_depth = 4 + rng.below(60);
  config.pair.side.recv_depth = 2 + rng.below(60);
  config.pair.side.inline_max = any_of(rng, {0, 64, 220});
  config.pair.side.signal_all = rng.chance(0.2);
  ConnectionConfig& connection = config.pair.connection;
  connection.path_mtu = static_cast<std::uint16_t>(256 << rng.below(5));
  connection.a_psn = random_psn(rng);
  connection.b_psn = random_psn(rng);
  connection.timeout = static_cast<std::uint8_t>(8 + rng.below(8));  // 1 to 134 ms
  // A slow line with a full queue takes tens of milliseconds: a timeout below that would be the program's mistake.
  if (config.pair.faults.bytes_per_second > 0) connection.timeout = std::max<std::uint8_t>(connection.timeout, 14);
  connection.min_rnr_timer = any_of(rng, {1, 5, 12, 14, 20});
  connection.max_rd_atomic = any_of(rng, {1, 2, 4, 16});
  connection.max_dest_rd_atomic = connection.max_rd_atomic;
  config.requests_each_way = 20 + rng.below(80);
  config.late_receives = rng.chance(0.5) ? 0.8 : 0.0;
  if (rng.chance(0.25)) config.ending = static_cast<Ending>(1 + rng.below(3));
  if (connection.path_mtu <= 1024 && rng.chance(0.25)) config.packets_max = 64;  // longer than the window
  return config;
}

std::string to_string(const TrafficConfig& config) {
  const auto& faults = config.pair.faults;
  const auto& connection = config.pair.connection;
  return "mtu " + std::to_string(connection.path_mtu) + " packets " + std::to_string(config.packets_max) + " timeout " +
         std::to_string(connection.timeout) + " rnr " + std::to_string(connection.min_rnr_timer) + " rd " +
         std::to_string(connection.max_rd_atomic) + " loss " + std::to_string(faults.loss) + " duplicate " +
         std::to_string(faults.duplicate) + " reorder " + std::to_string(faults.reorder) + " corrupt " +
         std::to_string(faults.corrupt) + " queue " + std::to_string(faults.queue_bytes) + " send depth " +
         std::to_string(config.pair.side.send_depth) + " recv depth " + std::to_string(config.pair.side.recv_depth) +
         " ending " + std::to_string(static_cast<int>(config.ending)) + " late " + std::to_string(config.late_receives);
}

struct Traffic::End {
  End(Side& a_side, std::size_t landing_bytes) : side(a_side), arena(a_side, kSharedBytes, landing_bytes) {}
  Side& side;
  Arena arena;
  std::optional<Flow> flow;  // of this end's requests
  std::size_t reads_planned = 0;
  std::size_t since_signaled = 0;
};

Traffic::Traffic(const TrafficConfig& config)
    : config_(config),
      rng_(config.pair.seed),
      pair_(config.pair),
      message_bytes_max_(config.packets_max * config.pair.connection.path_mtu),
      slot_bytes_(message_bytes_max_ + kSlackBytes) {
  // Landing slots: one for each receive that can be outstanding, then one for each read.
  const std::size_t slots = config.pair.side.recv_depth + config.pair.side.send_depth;
  for (std::size_t who = 0; who < 2; ++who) {
    ends_[who] = std::make_unique<End>(who == 0 ? pair_.a : pair_.b, slots * slot_bytes_);
    ends_[who]->arena.source.fill(rng_);
    ends_[who]->arena.readable.fill(rng_);
  }
  for (std::size_t who = 0; who < 2; ++who) {
    End& peer = *ends_[1 - who];
    ends_[who]->flow.emplace(pair_.world, ends_[who]->side, ends_[who]->arena, peer.side, peer.arena, plan(who));
  }
}

Traffic::~Traffic() = default;

std::vector<Request> Traffic::plan(std::size_t who) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < config_.requests_each_way; ++i) requests.push_back(plan_request(who, i));
  if (who == 0 && config_.ending != Ending::Clean) spoil(requests[requests.size() * 2 / 3]);
  return requests;
}

Request Traffic::plan_request(std::size_t who, std::size_t) {
  End& end = *ends_[who];
  End& peer = *ends_[1 - who];
  Request request;
  constexpr std::array kOpcodes{SendOpcode::Send,  SendOpcode::Send,     SendOpcode::Send, SendOpcode::SendImm,
                                SendOpcode::Write, SendOpcode::WriteImm, SendOpcode::Read};
  request.opcode = kOpcodes[rng_.below(kOpcodes.size())];
  request.solicited = rng_.chance(0.3);
  request.fence = rng_.chance(0.1);
  request.imm = rng_.next_u32();
  // Room comes back only with a signalled request: there is one in each half of the queue at least.
  request.signaled =
      config_.pair.side.signal_all || rng_.chance(0.6) || end.since_signaled + 2 > config_.pair.side.send_depth / 2;
  end.since_signaled = request.signaled ? 0 : end.since_signaled + 1;

  std::size_t length = random_length();
  request.is_inline = !request.is_read() && config_.pair.side.inline_max > 0 && rng_.chance(0.3);
  if (request.is_inline) length = std::min<std::size_t>(length, config_.pair.side.inline_max);
  request.remote_offset = rng_.below(static_cast<std::uint32_t>(kSharedBytes - length + 1));
  if (request.is_read()) {
    const std::size_t slot = config_.pair.side.recv_depth + end.reads_planned++ % config_.pair.side.send_depth;
    request.pieces = random_pieces(slot * slot_bytes_, length, queue::kSgeMax);
    const auto bytes = peer.arena.readable.buffer().bytes().subspan(request.remote_offset, length);
    request.message.assign(bytes.begin(), bytes.end());
    return request;
  }
  const std::size_t span_bytes = length + queue::kSgeMax * kGapMax;
  request.pieces = random_pieces(rng_.below(static_cast<std::uint32_t>(kSharedBytes - span_bytes)), length,
                                 request.is_inline ? 1 : queue::kSgeMax);
  for (const Piece& piece : request.pieces) {
    const auto bytes = end.arena.source.buffer().bytes().subspan(piece.offset, piece.length);
    request.message.insert(request.message.end(), bytes.begin(), bytes.end());
  }
  return request;
}

std::size_t Traffic::random_length() {
  const std::size_t mtu = config_.pair.connection.path_mtu;
  const auto packets_max = static_cast<std::uint32_t>(config_.packets_max);
  switch (rng_.below(8)) {
    case 0:
      return rng_.below(5);
    case 1:
      return mtu - 1 + rng_.below(3);
    case 2:
      return mtu * (1 + rng_.below(packets_max));
    case 3:
      return mtu * (1 + rng_.below(packets_max - 1)) - 1 + rng_.below(3);
    case 4:
    case 5:
      return rng_.below(static_cast<std::uint32_t>(mtu));
    default:
      return rng_.below(static_cast<std::uint32_t>(message_bytes_max_) + 1);
  }
}

// Cuts `length` bytes into up to `pieces_max` pieces, some of them empty, with gaps between them. None at all, where
// there is nothing to cut, half of the time.
std::vector<Piece> Traffic::random_pieces(std::size_t start, std::size_t length, std::size_t pieces_max) {
  if (length == 0 && rng_.chance(0.5)) return {};
  const std::size_t count = rng_.chance(0.5) ? 1 : 1 + rng_.below(static_cast<std::uint32_t>(pieces_max));
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const std::size_t piece = is_last ? length : rng_.below(static_cast<std::uint32_t>(length / 2) + 1);
    pieces.push_back({start, piece});
    length -= piece;
    start += piece + (count > 1 ? rng_.below(kGapMax) : 0);
  }
  return pieces;
}

void Traffic::spoil(Request& request) {
  request.is_inline = false;
  request.pieces.assign(1, {0, 100});
  request.message.assign(100, std::byte{0});
  request.opcode = config_.ending == Ending::BadRkey ? SendOpcode::Write : SendOpcode::Send;
  request.remote_offset = 0;
  constexpr std::array kFates{WcStatus::Success, WcStatus::LocProtErr, WcStatus::RemAccessErr, WcStatus::RemInvReqErr};
  request.fate = kFates[static_cast<std::size_t>(config_.ending)];
}

TrafficResult Traffic::run() {
  try {
    const auto start = pair_.world.now();
    std::uint64_t turns = 0;
    while (!everything_posted()) {
      act();
      if (++turns > kTurnsMax) pair_.world.fail("the programs never get rid of their requests");
    }
    pair_.world.run_until_idle(kRestLimit);
    for (std::size_t who = 0; who < 2; ++who) poll(who);
    for (auto& end : ends_) end->flow->check_at_rest();
    for (std::size_t who = 0; who < 2; ++who) {
      Arena& arena = ends_[who]->arena;
      for (Tracked* memory : {&arena.source, &arena.readable, &arena.exposed, &arena.landing}) {
        if (const auto offset = memory->first_difference()) {
          pair_.world.fail("memory of side " + std::to_string(who) + " differs at offset " + std::to_string(*offset));
        }
      }
    }
    const bool broken = ends_[0]->flow->has_failed() || ends_[1]->flow->has_failed();
    if (!broken && config_.ending != Ending::Clean) pair_.world.fail("the connection did not break");
    return {completions_, pair_.world.datagrams_sent(), pair_.world.now() - start, broken};
  } catch (const Failure& failure) {
    throw Failure(to_string(config_) + "\n" + failure.what() + "\n" + reasons());
  }
}

// One thing that one of the programs, or the network, does next.
void Traffic::act() {
  const std::size_t who = rng_.below(2);
  switch (rng_.below(4)) {
    case 0:
      post_send(who);
      return;
    case 1:
      if (!rng_.chance(config_.late_receives)) post_recv(who);
      return;
    case 2:
      poll(who);
      return;
    default:
      for (std::uint32_t steps = rng_.below(6); steps > 0; --steps) pair_.world.step();
      return;
  }
}

bool Traffic::everything_posted() const {
  for (std::size_t who = 0; who < 2; ++who) {
    const Flow& flow = *ends_[who]->flow;
    if (flow.posted() < flow.requests().size()) return false;
    // Of a peer that has failed nothing comes any more, so that the room for more receives may not come back.
    if (!flow.has_failed() && flow.receives_posted() < flow.takers().size()) return false;
  }
  return true;
}

bool Traffic::post_send(std::size_t who) {
  End& end = *ends_[who];
  End& peer = *ends_[1 - who];
  const std::size_t index = end.flow->posted();
  if (index == end.flow->requests().size()) return false;
  const Request& request = end.flow->requests()[index];
  queue::Wqe wqe;
  wqe.wr_id = index;
  wqe.opcode = request.opcode;
  wqe.signaled = request.signaled;
  wqe.solicited = request.solicited;
  wqe.fence = request.fence;
  wqe.imm_or_key = request.imm;
  Tracked& remote = request.is_read() ? peer.arena.readable : peer.arena.exposed;
  wqe.remote_addr = remote.buffer().address(request.remote_offset);
  wqe.rkey = request.fate == WcStatus::RemAccessErr ? queue::RKey(remote.buffer().rkey().value() ^ 0x10)
                                                    : remote.buffer().rkey();
  Tracked& local = request.is_read() ? end.arena.landing : end.arena.source;
  std::vector<queue::Sge> sges;
  for (const Piece& piece : request.pieces) sges.push_back(local.buffer().sge(piece.offset, piece.length));
  if (request.fate == WcStatus::LocProtErr) sges[0].lkey = queue::LKey(sges[0].lkey.value() ^ 0x10);
  wqe.has_inline_data = request.is_inline;
  if (request.is_inline) {
    wqe.inline_data = request.message;
  } else {
    wqe.sges = sges;
  }
  if (!end.side.post_send(pair_.world.now(), wqe)) return false;
  end.flow->on_posted();
  pair_.world.flush(who);
  return true;
}

// The receive for the next message of the peer that takes one: as long as it, or longer, or, where it is planned to be
// too short, that.
bool Traffic::post_recv(std::size_t who) {
  End& end = *ends_[who];
  Flow& flow = *ends_[1 - who]->flow;
  const std::size_t index = flow.receives_posted();
  if (index == flow.takers().size()) return false;
  const Request& request = flow.requests()[flow.takers()[index]];
  std::size_t length = request.message.size();
  if (request.is_write()) length = rng_.below(100);
  if (request.fate == WcStatus::RemInvReqErr) {
    length -= 1 + rng_.below(50);
  } else if (rng_.chance(0.5)) {
    length += rng_.below(1000);
  }
  const std::size_t slot = index % config_.pair.side.recv_depth;
  auto pieces = random_pieces(slot * slot_bytes_, length, queue::kSgeMax);
  std::vector<queue::Sge> sges;
  for (const Piece& piece : pieces) sges.push_back(end.arena.landing.buffer().sge(piece.offset, piece.length));
  if (!end.side.post_recv(index, sges)) return false;
  flow.on_receive_posted(std::move(pieces));
  return true;
}

void Traffic::poll(std::size_t who) {
  for (const Wc& wc : ends_[who]->side.poll_recv()) {
    ++completions_;
    ends_[1 - who]->flow->on_recv_completion(wc);
  }
  for (const Wc& wc : ends_[who]->side.poll_send()) {
    ++completions_;
    ends_[who]->flow->on_send_completion(wc);
  }
  const bool is_broken = ends_[0]->flow->has_failed() || ends_[1]->flow->has_failed();
  if (is_broken && config_.ending == Ending::Clean && !config_.may_break) pair_.world.fail("the connection broke");
}

// What the queue pairs themselves say.
std::string Traffic::reasons() {
  std::string text;
  for (const auto& end : ends_) {
    for (const std::string& reason : end->side.qp().take_reasons()) text += reason + "\n";
  }
  return text;
}

}  // namespace nicless::sim
