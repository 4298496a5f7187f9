// SPDX-License-Identifier: MIT
#include "tests/sim/planner.h"

#include <algorithm>
#include <array>

namespace nicless::sim {

using queue::SendOpcode;

namespace {

// Twice as many sends as of any other.
constexpr std::array kOpcodes{SendOpcode::Send,     SendOpcode::Send, SendOpcode::SendImm,     SendOpcode::Write,
                              SendOpcode::WriteImm, SendOpcode::Read, SendOpcode::CompareSwap, SendOpcode::FetchAdd};
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

}  // namespace

Planner::Planner(const TrafficConfig& config, queue::Rng& rng, Arena& own, Arena& peer)
    : config_(config),
      rng_(rng),
      own_(own),
      peer_(peer),
      slot_bytes_(config.packets_max * config.connection.path_mtu + kSlackBytes) {
  const auto bytes = peer.counters.buffer().bytes();
  for (std::size_t i = 0; i < kCounters; ++i) counters_.push_back(word_at(bytes.subspan(i * kWordBytes)));
}

std::vector<Request> Planner::plan(Mistake mistake, bool is_binder) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < config_.requests_each_way; ++i) {
    const auto special = window_request(i, is_binder);
    requests.push_back(special ? *special : next());
  }
  if (mistake != Mistake::None) spoil(requests[requests.size() * 2 / 3], mistake);
  return requests;
}

// A window is bound, written through, and invalidated by the peer's send; then bound anew under another key, written
// through, and invalidated at home. Each step waits until the one before it, of the other side, has completed.
std::optional<Request> Planner::window_request(std::size_t index, bool is_binder) {
  if (!config_.has_windows) return std::nullopt;
  const std::size_t count = config_.requests_each_way;
  const std::size_t bind[] = {count / 8, count / 2};
  const std::size_t use[] = {count / 4, count * 5 / 8};
  const std::size_t send_inv = count * 3 / 8;
  const std::size_t local_inv = count * 7 / 8;
  Request request;
  if (is_binder && (index == bind[0] || index == bind[1])) {
    request.opcode = SendOpcode::BindMw;
    request.gate = index == bind[0] ? 0 : send_inv + 1;
  } else if (is_binder && index == local_inv) {
    request.opcode = SendOpcode::LocalInv;
    request.gate = use[1] + 1;
  } else if (!is_binder && (index == use[0] || index == use[1])) {
    request.opcode = rng_.chance(0.5) ? SendOpcode::Write : SendOpcode::WriteImm;
    request.uses_window = true;
    request.gate = bind[index == use[0] ? 0 : 1] + 1;
  } else if (!is_binder && index == send_inv) {
    request.opcode = SendOpcode::SendInv;
    request.gate = bind[0] + 1;
  } else {
    return std::nullopt;
  }
  draw_flags(request);
  request.signaled = true;
  since_signaled_ = 0;
  if (!request.is_local()) {
    plan_message(request, random_length(rng_, config_.connection.path_mtu, config_.packets_max));
  }
  return request;
}

Request Planner::next() {
  Request request;
  request.opcode = kOpcodes[rng_.below(kOpcodes.size())];
  draw_flags(request);
  const std::size_t length = random_length(rng_, config_.connection.path_mtu, config_.packets_max);
  if (request.is_read()) {
    plan_read(request, length);
  } else if (request.is_atomic()) {
    plan_atomic(request);
  } else if (!rng_.chance(0.1) || !plan_forward(request)) {
    plan_message(request, length);
  }
  return request;
}

void Planner::draw_flags(Request& request) {
  request.solicited = rng_.chance(0.3);
  request.fence = rng_.chance(0.1);
  request.imm = rng_.next_u32();
  // Room comes back only with a signalled request: there is one in each half of the queue at least.
  request.signaled = config_.side.signal_all || rng_.chance(0.6) || since_signaled_ + 2 > config_.side.send_depth / 2;
  since_signaled_ = request.signaled ? 0 : since_signaled_ + 1;
}

// One for each request that can be outstanding; they come back in order.
std::size_t Planner::next_slot() {
  return slots_used_++ % config_.side.send_depth * slot_bytes_;
}

void Planner::plan_read(Request& request, std::size_t length) {
  request.remote_offset = rng_.below(static_cast<std::uint32_t>(kSharedBytes - length + 1));
  request.pieces = random_pieces(rng_, next_slot(), length, queue::kSgeMax);
  const auto bytes = peer_.readable.buffer().bytes().subspan(request.remote_offset, length);
  request.message.assign(bytes.begin(), bytes.end());
  brought_ = request;
}

void Planner::plan_atomic(Request& request) {
  request.pieces = random_pieces(rng_, next_slot(), kWordBytes, 3);
  request.message.resize(kWordBytes);
  if (request.opcode == SendOpcode::FetchAdd && rng_.chance(0.3)) {
    request.is_common = true;
    request.compare_add = 1;
    brought_.reset();  // what it will bring is not known
    return;
  }
  const std::size_t index = rng_.below(kCounters);
  std::uint64_t& word = counters_[index];
  request.remote_offset = index * kWordBytes;
  const auto original = bytes_of(word);
  request.message.assign(original.begin(), original.end());
  if (request.opcode == SendOpcode::FetchAdd) {
    request.compare_add = rng_.chance(0.5) ? 1 : rng_.next_u64();
    word += request.compare_add;
  } else {
    const bool is_equal = rng_.chance(0.6);
    request.compare_add = is_equal ? word : rng_.next_u64();
    request.swap = rng_.next_u64();
    if (is_equal) word = request.swap;
  }
  brought_ = request;
}

void Planner::plan_message(Request& request, std::size_t length) {
  request.is_inline = config_.side.inline_max > 0 && rng_.chance(0.3);
  if (request.is_inline) length = std::min<std::size_t>(length, config_.side.inline_max);
  request.remote_offset = rng_.below(static_cast<std::uint32_t>(kSharedBytes - length + 1));
  const std::size_t span_bytes = length + queue::kSgeMax * kGapMax;
  request.pieces = random_pieces(rng_, rng_.below(static_cast<std::uint32_t>(kSharedBytes - span_bytes)), length,
                                 request.is_inline ? 1 : queue::kSgeMax);
  for (const Piece& piece : request.pieces) {
    const auto bytes = own_.source.buffer().bytes().subspan(piece.offset, piece.length);
    request.message.insert(request.message.end(), bytes.begin(), bytes.end());
  }
}

// What was brought before goes out again: the fence makes it wait until it is there. The slot is not used anew before
// this request is done, as it takes as many requests after this one to come round.
bool Planner::plan_forward(Request& request) {
  if (!brought_) return false;
  request.is_forward = true;
  request.fence = true;
  request.pieces = brought_->pieces;
  request.message = brought_->message;
  request.remote_offset = rng_.below(static_cast<std::uint32_t>(kSharedBytes - request.message.size() + 1));
  return true;
}

void Planner::spoil(Request& request, Mistake mistake) {
  const bool is_remote = mistake == Mistake::BadRkey || mistake == Mistake::NoRight;
  const auto is_fit = [&] {
    if (mistake == Mistake::Misaligned) return request.is_atomic() && !request.is_common;
    if (mistake == Mistake::TooLong) return request.takes_receive() && !request.is_write() && !request.message.empty();
    if (mistake == Mistake::BadReceive)
      return request.takes_receive() && !request.is_write() && !request.message.empty();
    if (request.is_common || request.message.empty()) return false;
    return is_remote ? request.is_write() || request.brings_data() : !request.is_inline;
  };
  const bool signaled = request.signaled;
  while (!is_fit()) request = next();
  request.signaled = signaled;
  request.mistake = mistake;
  if (mistake == Mistake::Misaligned) request.remote_offset += 1 + rng_.below(7);
}

}  // namespace nicless::sim
