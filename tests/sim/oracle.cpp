// SPDX-License-Identifier: MIT
#include "tests/sim/oracle.h"

#include <algorithm>

namespace nicless::sim {

namespace {

using queue::WcStatus;

queue::WcOpcode completion_opcode(const Request& request) {
  if (request.is_read()) return queue::WcOpcode::RdmaRead;
  return request.is_write() ? queue::WcOpcode::RdmaWrite : queue::WcOpcode::Send;
}

Wc expected_receive(std::uint64_t wr_id, const Request& request) {
  return {.wr_id = wr_id,
          .status = WcStatus::Success,
          .opcode = request.is_write() ? queue::WcOpcode::RecvRdmaWithImm : queue::WcOpcode::Recv,
          .byte_len = static_cast<std::uint32_t>(request.message.size()),
          .flags = request.has_imm() ? queue::kWcWithImm : std::uint8_t{0},
          .imm = request.has_imm() ? request.imm : 0};
}

// Calls `use(piece offset, bytes)` for each part of a message as a scatter list takes it up.
template <typename Use>
void scatter(const std::vector<Piece>& pieces, std::span<const std::byte> message, Use use) {
  for (const Piece& piece : pieces) {
    const std::size_t count = std::min(piece.length, message.size());
    use(piece.offset, message.first(count));
    message = message.subspan(count);
  }
}

}  // namespace

void Tracked::fill(queue::Rng& rng) {
  for (std::byte& byte : buffer_.bytes()) byte = static_cast<std::byte>(rng.next_u32());
  expected_.assign(buffer_.bytes().begin(), buffer_.bytes().end());
}

void Tracked::expect(std::size_t offset, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), expected_.begin() + static_cast<std::ptrdiff_t>(offset));
}

bool Tracked::holds(std::size_t offset, std::span<const std::byte> bytes) {
  const auto held = buffer_.bytes().subspan(offset, bytes.size());
  return std::equal(held.begin(), held.end(), bytes.begin());
}

std::optional<std::size_t> Tracked::first_difference() {
  for (const auto& [offset, length] : ignored_) expect(offset, buffer_.bytes().subspan(offset, length));
  const auto held = buffer_.bytes();
  const auto found = std::mismatch(held.begin(), held.end(), expected_.begin());
  if (found.first == held.end()) return std::nullopt;
  return static_cast<std::size_t>(found.first - held.begin());
}

Arena::Arena(Side& side, std::size_t shared_bytes, std::size_t landing_bytes)
    : source(side, shared_bytes, 0),
      readable(side, shared_bytes, queue::kAccessRemoteRead),
      exposed(side, shared_bytes, queue::kAccessLocalWrite | queue::kAccessRemoteWrite),
      landing(side, landing_bytes, queue::kAccessLocalWrite) {}

Flow::Flow(World& world, Side& from, Arena& from_arena, Side& to, Arena& to_arena, std::vector<Request> requests)
    : world_(world),
      from_(from),
      from_arena_(from_arena),
      to_(to),
      to_arena_(to_arena),
      requests_(std::move(requests)) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i].takes_receive()) takers_.push_back(i);
  }
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
  first_failed_ = index;
}

void Flow::check_success(std::size_t index, const Wc& wc) {
  const Request& request = requests_[index];
  if (!request.signaled) fail("a completion nobody asked for: " + to_string(wc));
  if (request.fate != WcStatus::Success) fail("succeeded, and must not: " + to_string(wc));
  if (wc.opcode != completion_opcode(request)) fail("wrong opcode: " + to_string(wc));
  if (request.is_read() && wc.byte_len != request.message.size()) fail("wrong byte_len of a read: " + to_string(wc));
  settle(index + 1);
}

void Flow::settle(std::size_t end) {
  for (; settled_ < end; ++settled_) {
    const Request& request = requests_[settled_];
    if (!request.is_read()) continue;
    scatter(request.pieces, request.message, [&](std::size_t offset, std::span<const std::byte> bytes) {
      if (!from_arena_.landing.holds(offset, bytes)) fail("read " + std::to_string(settled_) + " brought wrong data");
      from_arena_.landing.expect(offset, bytes);
    });
  }
}

void Flow::on_recv_completion(const Wc& wc) {
  if (wc.wr_id != receives_completed_ || wc.wr_id >= receives_.size()) {
    fail("receive out of order, twice or never posted: " + to_string(wc));
  }
  const std::size_t index = receives_completed_++;
  if (wc.status != WcStatus::Success) {
    if (!first_failed_receive_) {
      first_failed_receive_ = index;
    } else if (wc.status != WcStatus::WrFlushErr) {
      fail("a receive is not flushed after an error: " + to_string(wc));
    }
    return;
  }
  if (first_failed_receive_) fail("a receive succeeds after a failed one: " + to_string(wc));
  if (index >= takers_.size() || takers_[index] >= posted_)
    fail("a receive of nothing that was sent: " + to_string(wc));
  const Request& request = requests_[takers_[index]];
  if (wc != expected_receive(index, request)) {
    fail("received " + to_string(wc) + ", expected " + to_string(expected_receive(index, request)));
  }
  if (request.is_write()) return;
  scatter(receives_[index], request.message, [&](std::size_t offset, std::span<const std::byte> bytes) {
    if (!to_arena_.landing.holds(offset, bytes)) fail("receive " + std::to_string(index) + " has wrong data");
    to_arena_.landing.expect(offset, bytes);
  });
}

bool Flow::is_done() const {
  for (std::size_t i = completed_; i < posted_; ++i) {
    if (requests_[i].signaled || first_failed_) return false;
  }
  return posted_ == requests_.size();
}

void Flow::check_at_rest() {
  if (!is_done()) fail("request " + std::to_string(completed_) + " has no completion");
  if (!from_.send_queue().empty()) fail("at rest the send queue is not empty");
  if (!first_failed_) settle(posted_);
  // Writes reach memory in the order posted: the reference copy is made in one go.
  for (std::size_t i = 0; i < settled_; ++i) {
    if (requests_[i].is_write()) to_arena_.exposed.expect(requests_[i].remote_offset, requests_[i].message);
  }
  if (first_failed_ && from_.qp().state() != wire::QpState::Err) fail("a request failed, and the queue pair did not");
  if (to_.qp().state() == wire::QpState::Err && receives_completed_ != receives_.size()) {
    fail("not every receive was flushed");
  }
  if (first_failed_ || first_failed_receive_) {
    forgive_unfinished();
  } else if (receives_completed_ != takers_.size()) {
    fail("a message was sent and acknowledged, and nothing was received");
  }
}

// What a broken connection had under way may have happened or not, in part even; nothing else may.
void Flow::forgive_unfinished() {
  for (std::size_t i = settled_; i < posted_; ++i) {
    const Request& request = requests_[i];
    if (request.is_write()) to_arena_.exposed.ignore(request.remote_offset, request.message.size());
    if (!request.is_read()) continue;
    for (const Piece& piece : request.pieces) from_arena_.landing.ignore(piece.offset, piece.length);
  }
  if (!first_failed_receive_) return;
  for (const Piece& piece : receives_[*first_failed_receive_]) {
    to_arena_.landing.ignore(piece.offset, piece.length);
  }
}

void Flow::fail(const std::string& why) const {
  world_.fail("requests of " + wire::to_string(from_.endpoint()) + ": " + why);
}

}  // namespace nicless::sim
