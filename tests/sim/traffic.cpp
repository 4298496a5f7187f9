// SPDX-License-Identifier: MIT
#include "tests/sim/traffic.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tests/sim/drain.h"
#include "tests/sim/planner.h"

namespace nicless::sim {

namespace {

using wire::QpState;

constexpr queue::Duration kRestLimit = std::chrono::seconds(3000);
constexpr std::uint64_t kTurnsMax = 5'000'000;
constexpr std::uint32_t kSharedDepth = 48;

}  // namespace

struct Traffic::Host {
  explicit Host(std::uint64_t seed) : events(*queue::open_event_fd()), regions(seed) {}
  queue::AsyncEvents events;
  queue::MrTable regions;
  std::optional<queue::SharedReceiveQueue> shared_receives;
  std::optional<ReceivePool> shared_pool;
  std::optional<Buffer> common;  // one word
};

struct Traffic::End {
  End(World& world, std::size_t host, const SideConfig& config, std::size_t landing_bytes)
      : side(world.engine(host), world.endpoint(host), config, 1), arena(side, kSharedBytes, landing_bytes) {}
  Side side;
  Arena arena;
  std::optional<ReceivePool> own_pool;
  ReceivePool* pool = nullptr;
  End* peer = nullptr;
  std::optional<Flow> flow;  // of this end's requests
  Drain drain;
  queue::RKey window{};  // a type 2 window of this end's
};

struct Traffic::Connection {
  std::unique_ptr<End> ends[2];
  bool is_broken() const { return ends[0]->flow->has_failed() || ends[1]->flow->has_failed(); }
};

Traffic::Traffic(const TrafficConfig& config)
    : config_(config),
      rng_(config.seed),
      world_(config.seed, config.faults),
      slot_bytes_(config.packets_max * config.connection.path_mtu + kSlackBytes) {
  for (std::size_t who = 0; who < 2; ++who) {
    hosts_[who] = std::make_unique<Host>(config.seed * 2 + who);
    if (config.is_receive_shared) {
      hosts_[who]->shared_receives.emplace(kSharedDepth, queue::kSgeMax, hosts_[who]->events, nullptr);
    }
  }
  for (std::size_t i = 0; i < config.connections; ++i) {
    connections_.push_back(std::make_unique<Connection>());
    connect(*connections_.back());
  }
  for (std::size_t i = 0; i < config.connections; ++i) plan(i);
}

Traffic::~Traffic() {
  for (auto& host : hosts_) host->shared_pool.reset();
}

void Traffic::connect(Connection& connection) {
  for (std::size_t who = 0; who < 2; ++who) {
    Host& host = *hosts_[who];
    SideConfig side = config_.side;
    side.regions = &host.regions;
    if (host.shared_receives) side.shared_receives = &*host.shared_receives;
    connection.ends[who] = std::make_unique<End>(world_, who, side, config_.side.send_depth * slot_bytes_);
    End& end = *connection.ends[who];
    for (Tracked* memory : {&end.arena.source, &end.arena.readable, &end.arena.counters}) memory->fill(rng_);
    end.window = *host.regions.add_window(queue::PdId{1}, queue::WindowType::Type2);
    if (!host.common) {
      host.common.emplace(end.side.make_buffer(sizeof(std::uint64_t)));
      std::fill(host.common->bytes().begin(), host.common->bytes().end(), std::byte{0});
    }
    if (host.shared_receives) {
      if (!host.shared_pool) host.shared_pool.emplace(end.side, kSharedDepth, slot_bytes_, true);
      end.pool = &*host.shared_pool;
    } else {
      end.pool = &end.own_pool.emplace(end.side, config_.side.recv_depth, slot_bytes_, false);
    }
  }
  End& a = *connection.ends[0];
  End& b = *connection.ends[1];
  a.peer = &b;
  b.peer = &a;
  const std::uint32_t a_psn = random_psn(rng_);
  const std::uint32_t b_psn = random_psn(rng_);
  a.side.connect(world_.now(), b.side, config_.connection, a_psn, b_psn);
  b.side.connect(world_.now(), a.side, config_.connection, b_psn, a_psn);
}

// The first connection is the one that breaks, if any is to; the first end makes the mistake.
void Traffic::plan(std::size_t index) {
  const bool is_to_break = index == 0 && config_.ending != Ending::Clean;
  Flow::Permitted permitted;
  permitted.flush = is_to_break || config_.may_break;
  permitted.timeout = is_to_break || config_.may_break;
  permitted.rnr = config_.may_break;
  for (std::size_t who = 0; who < 2; ++who) {
    End& end = *connections_[index]->ends[who];
    End& peer = *end.peer;
    Planner planner(config_, rng_, end.arena, peer.arena);
    const Mistake mistake = is_to_break && who == 0 ? config_.mistake : Mistake::None;
    end.flow.emplace(Flow::Ends{world_, end.side, end.arena, peer.side, peer.arena, *peer.pool},
                     planner.plan(mistake, who == 0), permitted);
  }
}

TrafficResult Traffic::run() {
  try {
    const auto start = world_.now();
    std::uint64_t turns = 0;
    while (!is_everything_posted()) {
      act();
      if (++turns > kTurnsMax) world_.fail("the programs never get rid of their requests");
    }
    world_.run_until_idle(kRestLimit);
    check_at_rest();
    const bool broken = std::any_of(connections_.begin(), connections_.end(),
                                    [](const auto& connection) { return connection->is_broken(); });
    if (!broken && config_.ending != Ending::Clean) world_.fail("the connection did not break");
    return {completions_, world_.datagrams_sent(), world_.now() - start, broken};
  } catch (const Failure& failure) {
    throw Failure(to_string(config_) + "\n" + failure.what() + "\n" + reasons());
  }
}

// One thing that one of the programs, or the network, does next.
void Traffic::act() {
  Connection& connection = *connections_[rng_.below(static_cast<std::uint32_t>(connections_.size()))];
  const std::size_t who = rng_.below(2);
  End& end = *connection.ends[who];
  switch (rng_.below(4)) {
    case 0:
      if (end.drain.is_under_way() || rng_.chance(config_.drains)) end.drain.step(world_, rng_, end.side, who);
      return post_send(who, end);
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

// One for each message that may still come, to the queue of this end alone or to the one its host shares.
std::size_t Traffic::receives_due(const End& end) const {
  std::size_t due = 0;
  for (const auto& connection : connections_) {
    for (const auto& other : connection->ends) {
      const Flow& flow = *other->peer->flow;
      if (other->pool == end.pool && !flow.has_failed()) due += flow.takers().size() - flow.received();
    }
  }
  return due;
}

bool Traffic::is_everything_posted() const {
  for (const auto& connection : connections_) {
    for (const auto& each : connection->ends) {
      const End& end = *each;
      if (end.drain.is_under_way() || end.flow->posted() < end.flow->requests().size()) return false;
      if (end.pool->outstanding() < receives_due(end)) return false;
    }
  }
  return true;
}

void Traffic::post_send(std::size_t who, End& end) {
  const std::size_t index = end.flow->posted();
  if (index == end.flow->requests().size() || !may_post(end, end.flow->requests()[index])) return;
  const bool is_first = &end == connections_[0]->ends[0].get();
  if (is_first && config_.ending == Ending::Killed && index == end.flow->requests().size() * 2 / 3) {
    static_cast<void>(end.side.to_state(world_.now(), QpState::Err));
  }
  const Request& request = end.flow->requests()[index];
  queue::Wqe wqe;
  wqe.wr_id = index;
  wqe.opcode = request.opcode;
  wqe.signaled = request.signaled;
  wqe.solicited = request.solicited;
  wqe.fence = request.fence;
  wqe.imm_or_key = request.imm;
  wqe.compare_add = request.compare_add;
  wqe.swap = request.swap;
  Arena& there = end.peer->arena;
  Tracked* remote = request.is_read() ? &there.readable : request.is_atomic() ? &there.counters : &there.exposed;
  if (request.mistake == Mistake::NoRight) remote = &there.source;
  const Buffer& target = request.is_common ? *hosts_[1 - who]->common : remote->buffer();
  wqe.remote_addr = target.address(request.remote_offset);
  wqe.rkey = target.rkey();
  if (request.uses_window) wqe.rkey = end.peer->window;
  if (request.opcode == queue::SendOpcode::SendInv) wqe.imm_or_key = end.peer->window.value();
  if (request.opcode == queue::SendOpcode::LocalInv) wqe.imm_or_key = end.window.value();
  if (request.opcode == queue::SendOpcode::BindMw) bind_anew(end).put_into(wqe);
  if (request.mistake == Mistake::BadRkey) wqe.rkey = queue::RKey(wqe.rkey.value() ^ 0x10);
  Tracked& local = request.brings_data() || request.is_forward ? end.arena.landing : end.arena.source;
  std::vector<queue::Sge> sges = local.sges(request.pieces);
  if (request.mistake == Mistake::BadLkey) {
    auto used = std::find_if(sges.begin(), sges.end(), [](const queue::Sge& sge) { return sge.length > 0; });
    used->lkey = queue::LKey(used->lkey.value() ^ 0x10);
  }
  wqe.has_inline_data = request.is_inline;
  if (request.is_inline) {
    wqe.inline_data = request.message;
  } else {
    wqe.sges = sges;
  }
  if (!end.side.post_send(world_.now(), wqe)) return;
  if (request.opcode == queue::SendOpcode::BindMw) end.window = wqe.rkey;
  end.flow->on_posted(wqe.imm_or_key);
  world_.flush(who);
}

// A request that follows from one of the peer's waits for it, as programs do; in a broken connection nothing follows.
bool Traffic::may_post(const End& end, const Request& request) const {
  return end.peer->flow->completed() >= request.gate || end.flow->has_failed() || end.peer->flow->has_failed();
}

// The whole of `exposed`, under the next key of the window's.
queue::Binding Traffic::bind_anew(End& end) const {
  const std::uint32_t key = (end.window.value() & ~0xffu) | ((end.window.value() + 1) & 0xff);
  const Buffer& exposed = end.arena.exposed.buffer();
  return {queue::RKey(key), exposed.lkey(), exposed.address(), kSharedBytes, queue::kAccessRemoteWrite};
}

// The receive for the next message of the peer that takes one: as long as it, or longer, or, where that is the mistake,
// too short. Those of a shared queue take whatever comes.
void Traffic::post_recv(End& end) {
  if (end.pool->is_shared()) {
    if (end.pool->outstanding() >= receives_due(end)) return;
    end.pool->post(rng_, end.side, slot_bytes_ - kSlackBytes + rng_.below(1000));
    return;
  }
  const Flow& flow = *end.peer->flow;
  const std::size_t index = end.pool->posted();
  if (index == flow.takers().size()) return;
  const Request& request = flow.requests()[flow.takers()[index]];
  std::size_t length = request.is_write() ? rng_.below(100) : request.message.size();
  if (request.mistake == Mistake::TooLong) {
    length -= 1 + rng_.below(static_cast<std::uint32_t>(std::min<std::size_t>(length, 50)));
  } else if (rng_.chance(0.5)) {
    length += rng_.below(1000);
  }
  end.pool->post(rng_, end.side, length, request.mistake == Mistake::BadReceive);
}

void Traffic::poll(End& end) {
  for (const Wc& wc : end.side.poll_recv()) {
    ++completions_;
    end.peer->flow->on_recv_completion(wc);
  }
  for (const Wc& wc : end.side.poll_send()) {
    ++completions_;
    end.flow->on_send_completion(wc);
  }
}

void Traffic::check_at_rest() {
  for (auto& connection : connections_) {
    for (auto& end : connection->ends) poll(*end);
  }
  for (auto& connection : connections_) {
    for (auto& end : connection->ends) end->flow->check_at_rest();
  }
  for (std::size_t i = 0; i < connections_.size() * 2; ++i) {
    End& end = *connections_[i / 2]->ends[i % 2];
    auto where = end.arena.first_difference();
    if (end.pool->landing().first_difference()) where = "where receives land";
    if (where) world_.fail("memory of end " + std::to_string(i) + " differs: " + *where);
  }
  for (std::size_t who = 0; who < 2; ++who) check_common_word(who);
}

// Every atomic on it added one: no two found the same number there, and it holds how many there were.
void Traffic::check_common_word(std::size_t who) {
  std::set<std::uint64_t> originals;
  std::size_t done = 0;
  std::size_t posted = 0;
  for (const auto& connection : connections_) {
    const Flow& flow = *connection->ends[1 - who]->flow;
    originals.insert(flow.common_originals().begin(), flow.common_originals().end());
    done += flow.common_originals().size();
    posted += flow.common_posted();
  }
  const std::uint64_t word = word_at(hosts_[who]->common->bytes());
  if (originals.size() != done) world_.fail("two atomics found the same number");
  if (word < done || word > posted || (!originals.empty() && *originals.rbegin() >= word)) {
    world_.fail("the common word is " + std::to_string(word) + " after " + std::to_string(done) + " of " +
                std::to_string(posted) + " atomics");
  }
}

// What the queue pairs themselves say.
std::string Traffic::reasons() {
  std::string text;
  for (const auto& connection : connections_) {
    for (const auto& end : connection->ends) {
      text += "qp " + std::to_string(end->side.qpn().value()) + " in " + to_string(end->side.qp().state()) + ": " +
              std::to_string(end->flow->posted()) + " of " + std::to_string(end->flow->requests().size()) +
              " posted, " + std::to_string(end->flow->completed()) + " completed, " +
              std::to_string(end->pool->outstanding()) + " receives outstanding\n";
      for (const std::string& reason : end->side.qp().take_reasons()) text += reason + "\n";
    }
  }
  return text;
}

}  // namespace nicless::sim
