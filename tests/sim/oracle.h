// SPDX-License-Identifier: MIT
// What must be true of every run, whatever the network did: each request completes exactly once and in order, memory
// equals a reference copy, no other byte changes, a failed queue pair flushes everything, and at rest nothing is
// outstanding or armed. One Flow watches one direction: the requests of one side and the receives of the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/side.h"
#include "tests/sim/world.h"

namespace nicless::sim {

// A buffer and what it must hold at rest.
class Tracked {
 public:
  Tracked(Side& side, std::size_t size, std::uint32_t access) : buffer_(side.make_buffer(size, access)) {
    expected_.assign(buffer_.bytes().begin(), buffer_.bytes().end());
  }
  Buffer& buffer() { return buffer_; }
  void fill(queue::Rng& rng);  // random content, as the program itself would write it
  void expect(std::size_t offset, std::span<const std::byte> bytes);
  void ignore(std::size_t offset, std::size_t length) { ignored_.emplace_back(offset, length); }
  bool holds(std::size_t offset, std::span<const std::byte> bytes);  // now
  std::optional<std::size_t> first_difference();                     // offset of a byte that is not as expected

 private:
  Buffer buffer_;
  std::vector<std::byte> expected_;
  std::vector<std::pair<std::size_t, std::size_t>> ignored_;
};

// Pieces of one Tracked buffer, in the order of a scatter-gather list.
struct Piece {
  std::size_t offset = 0;
  std::size_t length = 0;
};

// One request, all of it decided before it is posted.
struct Request {
  queue::SendOpcode opcode = queue::SendOpcode::Send;
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  bool is_inline = false;
  std::uint32_t imm = 0;
  std::vector<std::byte> message;  // what it moves: sent, written or read
  std::vector<Piece> pieces;       // of `source` for sends and writes, of `landing` for reads
  std::size_t remote_offset = 0;   // in `exposed` for writes, in `readable` for reads
  // What becomes of it in a connection that does not break: Success, or the one error it was planned to end in.
  queue::WcStatus fate = queue::WcStatus::Success;

  bool is_write() const { return opcode == queue::SendOpcode::Write || opcode == queue::SendOpcode::WriteImm; }
  bool is_read() const { return opcode == queue::SendOpcode::Read; }
  bool has_imm() const { return opcode == queue::SendOpcode::WriteImm || opcode == queue::SendOpcode::SendImm; }
  bool takes_receive() const { return opcode != queue::SendOpcode::Write && opcode != queue::SendOpcode::Read; }
};

// The memory of one side.
struct Arena {
  Arena(Side& side, std::size_t shared_bytes, std::size_t landing_bytes);
  Tracked source;    // gathered from; nobody writes it
  Tracked readable;  // the peer reads it; nobody writes it
  Tracked exposed;   // the peer writes it
  Tracked landing;   // receives and the data that reads bring
};

class Flow {
 public:
  // requests: those of `from`, in the order they will be posted; wr_id of request i is i, of receive i too.
  Flow(World& world, Side& from, Arena& from_arena, Side& to, Arena& to_arena, std::vector<Request> requests);

  const std::vector<Request>& requests() const { return requests_; }
  // The requests that take a receive, by index: the k-th receive is for the k-th of them.
  const std::vector<std::size_t>& takers() const { return takers_; }

  void on_receive_posted(std::vector<Piece> pieces) { receives_.push_back(std::move(pieces)); }
  void on_posted() { ++posted_; }
  std::size_t posted() const { return posted_; }
  std::size_t receives_posted() const { return receives_.size(); }

  void on_send_completion(const Wc& wc);
  void on_recv_completion(const Wc& wc);
  bool has_failed() const { return first_failed_ || first_failed_receive_; }
  bool is_done() const;  // all requests have their completion, as far as completions are due

  // Both flows of a connection have ended and the world rests.
  void check_at_rest();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  void check_success(std::size_t index, const Wc& wc);
  void settle(std::size_t end);  // all requests before `end` have succeeded
  void forgive_unfinished();

  World& world_;
  Side& from_;
  Arena& from_arena_;
  Side& to_;
  Arena& to_arena_;
  std::vector<Request> requests_;
  std::vector<std::size_t> takers_;
  std::vector<std::vector<Piece>> receives_;
  std::size_t posted_ = 0;
  std::size_t settled_ = 0;             // requests known to have succeeded
  std::size_t completed_ = 0;           // requests that have or will never have a completion of their own
  std::size_t receives_completed_ = 0;  // completions seen at the receiving side
  std::optional<std::size_t> first_failed_;
  std::optional<std::size_t> first_failed_receive_;
};

}  // namespace nicless::sim
