// SPDX-License-Identifier: MIT
#include "tests/sim/flow.h"

#include <algorithm>

namespace nicless::sim {

using queue::SendOpcode;
using queue::WcStatus;

namespace {

queue::WcOpcode completion_opcode(const Request& request) {
  switch (request.opcode) {
    case SendOpcode::Read:
      return queue::WcOpcode::RdmaRead;
    case SendOpcode::CompareSwap:
      return queue::WcOpcode::CompSwap;
    case SendOpcode::FetchAdd:
      return queue::WcOpcode::FetchAdd;
    case SendOpcode::Write:
    case SendOpcode::WriteImm:
      return queue::WcOpcode::RdmaWrite;
    case SendOpcode::BindMw:
      return queue::WcOpcode::BindMw;
    case SendOpcode::LocalInv:
      return queue::WcOpcode::LocalInv;
    default:
      return queue::WcOpcode::Send;
  }
}

Wc expected_receive(std::uint64_t wr_id, const Request& request, std::uint32_t key) {
  if (request.opcode == SendOpcode::SendInv) {
    return {.wr_id = wr_id,
            .opcode = queue::WcOpcode::Recv,
            .byte_len = static_cast<std::uint32_t>(request.message.size()),
            .flags = queue::kWcWithInv,
            .imm = key};
  }
  return {.wr_id = wr_id,
          .status = WcStatus::Success,
          .opcode = request.is_write() ? queue::WcOpcode::RecvRdmaWithImm : queue::WcOpcode::Recv,
          .byte_len = static_cast<std::uint32_t>(request.message.size()),
          .flags = request.has_imm() ? queue::kWcWithImm : std::uint8_t{0},
          .imm = request.has_imm() ? request.imm : 0};
}

}  // namespace

Flow::Flow(const Ends& ends, std::vector<Request> requests, Permitted permitted)
    : ends_(ends), requests_(std::move(requests)), permitted_(permitted) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].takes_receive()) takers_.push_back(i);
  }
}

void Flow::on_posted(std::uint32_t key) {
  keys_.push_back(key);
  ++posted_;
}

void Flow::on_send_completion(const Wc& wc) {
  const auto index = static_cast<std::size_t>(wc.wr_id);
  if (index >= posted_) fail("a completion of a request that was not posted: " + to_string(wc));
  if (index < completed_) fail("a second completion, or one out of order: " + to_string(wc));
  if (first_failed_) {
    if (index != completed_) fail("a request after the failed one was skipped: " + to_string(wc));
    if (wc.status != WcStatus::WrFlushErr) fail("not flushed after an error: " + to_string(wc));
    completed_ = index + 1;
    return;
  }
  for (std::size_t i = completed_; i < index; ++i) {
    if (requests_[i].signaled) fail("request " + std::to_string(i) + " was skipped by " + to_string(wc));
  }
  completed_ = index + 1;
  if (wc.status == WcStatus::Success) return check_success(index, wc);
  settle(index);
  check_failure(index, wc);
  first_failed_ = index;
}

void Flow::check_success(std::size_t index, const Wc& wc) {
  const Request& request = requests_[index];
  if (!request.signaled) fail("a completion nobody asked for: " + to_string(wc));
  if (request.mistake != Mistake::None) fail("succeeded, and must not: " + to_string(wc));
  if (wc.opcode != completion_opcode(request)) fail("wrong opcode: " + to_string(wc));
  if (request.brings_data() && wc.byte_len != request.message.size()) fail("wrong byte_len: " + to_string(wc));
  settle(index + 1);
}

void Flow::check_failure(std::size_t index, const Wc& wc) {
  const Mistake mistake = requests_[index].mistake;
  if (mistake != Mistake::None && wc.status == status_of(mistake)) return;
  // What was refused later is not known to the requester when the answer is lost: the peer is silent from then on.
  if (wc.status == WcStatus::RetryExcErr && permitted_.timeout && mistake != Mistake::BadLkey) return;
  if (wc.status == WcStatus::RnrRetryExcErr && permitted_.rnr) return;
  if (wc.status == WcStatus::WrFlushErr && permitted_.flush) return;
  // A peer that has given up has not invalidated the window that is bound anew.
  if (wc.status == WcStatus::MwBindErr && requests_[index].opcode == SendOpcode::BindMw && permitted_.flush) return;
  fail("failed otherwise than it must: " + to_string(wc));
}

void Flow::settle(std::size_t end) {
  for (; settled_ < end; ++settled_) {
    if (requests_[settled_].brings_data()) settle_data(requests_[settled_]);
  }
}

void Flow::settle_data(const Request& request) {
  Tracked& landing = ends_.from_arena.landing;
  if (request.is_common) {
    std::vector<std::byte> brought;
    for (const Piece& piece : request.pieces) {
      const auto bytes = landing.buffer().bytes().subspan(piece.offset, piece.length);
      brought.insert(brought.end(), bytes.begin(), bytes.end());
    }
    common_originals_.push_back(word_at(brought));
    return landing.accept(request.pieces);
  }
  scatter(request.pieces, request.message, [&](std::size_t offset, std::span<const std::byte> bytes) {
    if (!landing.holds(offset, bytes)) fail("request " + std::to_string(settled_) + " brought wrong data");
    landing.expect(offset, bytes);
  });
}

void Flow::on_recv_completion(const Wc& wc) {
  std::vector<Piece> pieces;
  try {
    pieces = ends_.receives.take(wc.wr_id);
  } catch (const Failure& failure) {
    fail(failure.what() + (": " + to_string(wc)));
  }
  if (wc.status != WcStatus::Success) return on_failed_receive(wc, pieces);
  if (has_failed_receive_) fail("a receive succeeds after a failed one: " + to_string(wc));
  if (received_ >= takers_.size() || takers_[received_] >= posted_) {
    fail("a receive of nothing that was sent: " + to_string(wc));
  }
  const std::size_t index = takers_[received_++];
  const Request& request = requests_[index];
  const Wc expected = expected_receive(wc.wr_id, request, keys_[index]);
  if (wc != expected) fail("received " + to_string(wc) + ", expected " + to_string(expected));
  if (request.is_write()) return;
  Tracked& landing = ends_.receives.landing();
  scatter(pieces, request.message, [&](std::size_t offset, std::span<const std::byte> bytes) {
    if (!landing.holds(offset, bytes)) fail("receive " + std::to_string(wc.wr_id) + " has wrong data");
    landing.expect(offset, bytes);
  });
}

// The first may be of a message that arrived in part; those behind it are flushed, and their memory is as it was.
void Flow::on_failed_receive(const Wc& wc, const std::vector<Piece>& pieces) {
  const bool is_first = !has_failed_receive_;
  has_failed_receive_ = true;
  if (is_first) ends_.receives.landing().accept(pieces);
  WcStatus expected = WcStatus::WrFlushErr;
  if (is_first && received_ < takers_.size()) expected = receive_status_of(requests_[takers_[received_]].mistake);
  if (wc.status == expected || (wc.status == WcStatus::WrFlushErr && permitted_.flush)) return;
  fail("a receive failed otherwise than it must: " + to_string(wc));
}

std::size_t Flow::common_posted() const {
  return static_cast<std::size_t>(std::count_if(requests_.begin(),
                                                requests_.begin() + static_cast<std::ptrdiff_t>(posted_),
                                                [](const Request& request) { return request.is_common; }));
}

void Flow::check_at_rest() {
  for (std::size_t i = completed_; i < posted_; ++i) {
    if (requests_[i].signaled || first_failed_) fail("request " + std::to_string(i) + " has no completion");
  }
  if (!ends_.from.send_queue().empty()) fail("at rest the send queue is not empty");
  if (!first_failed_) settle(posted_);
  // Writes reach memory in the order posted: the reference copy is made in one go.
  for (std::size_t i = 0; i < settled_; ++i) {
    if (requests_[i].is_write()) ends_.to_arena.exposed.expect(requests_[i].remote_offset, requests_[i].message);
  }
  check_atomics();
  if (first_failed_ && ends_.from.qp().state() != wire::QpState::Err) {
    fail("a request failed, and the queue pair did not");
  }
  const bool is_to_failed = ends_.to.qp().state() == wire::QpState::Err;
  if (is_to_failed && !ends_.receives.is_shared() && ends_.receives.outstanding() > 0) {
    fail("not every receive was flushed");
  }
  if (has_failed()) {
    forgive_unfinished();
    if (!is_to_failed) ends_.receives.accept_partial(1);
  } else if (received_ != takers_.size()) {
    fail("a message was sent and acknowledged, and nothing was received");
  }
}

// Each that succeeded was carried out once; of those under way when the connection broke, the first few may have been.
void Flow::check_atomics() {
  Tracked& counters = ends_.to_arena.counters;
  const auto carry_out = [&](const Request& request) {
    if (!request.is_atomic() || request.is_common) return;
    const std::uint64_t original = word_at(request.message);
    std::uint64_t after = original + request.compare_add;
    if (request.opcode == SendOpcode::CompareSwap) after = original == request.compare_add ? request.swap : original;
    counters.expect(request.remote_offset, bytes_of(after));
  };
  for (std::size_t i = 0; i < settled_; ++i) carry_out(requests_[i]);
  for (std::size_t i = settled_; i < posted_ && counters.first_difference(); ++i) {
    if (requests_[i].mistake != Mistake::None) return;
    carry_out(requests_[i]);
  }
}

// What a broken connection had under way may have happened or not, in part even; nothing else may.
void Flow::forgive_unfinished() {
  for (std::size_t i = settled_; i < posted_; ++i) {
    const Request& request = requests_[i];
    if (request.mistake != Mistake::None) return;  // nothing of it, nor of what stands behind it
    if (request.is_write()) ends_.to_arena.exposed.ignore(request.remote_offset, request.message.size());
    if (!request.brings_data()) continue;
    for (const Piece& piece : request.pieces) ends_.from_arena.landing.ignore(piece.offset, piece.length);
  }
}

void Flow::fail(const std::string& why) const {
  ends_.world.fail("requests of " + wire::to_string(ends_.from.endpoint()) + " to qp " +
                   std::to_string(ends_.to.qpn().value()) + ": " + why);
}

}  // namespace nicless::sim
