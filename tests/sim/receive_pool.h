// SPDX-License-Identifier: MIT
// The receives that a simulated program posts, of one queue pair or to a queue shared by several, and the memory they
// land in. Completions come in the order posted, unless the queue is shared. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tests/sim/memory.h"

namespace nicless::sim {

class ReceivePool {
 public:
  // side: any of those that share the queue. slot_bytes: what one receive may be spread over, gaps included.
  ReceivePool(Side& side, std::uint32_t depth, std::size_t slot_bytes, bool is_shared);

  bool is_shared() const { return is_shared_; }
  // Posts one for a message of `length` bytes, in pieces as the generator decides; false when the queue is full. wr_id
  // is its number, from 0. A bad one has a wrong key in its list.
  bool post(queue::Rng& rng, Side& side, std::size_t length, bool is_bad = false);
  std::size_t posted() const { return posted_; }
  std::size_t outstanding() const { return outstanding_.size(); }  // no completion seen yet

  // The pieces of a receive that completed; a Failure says why it must not.
  std::vector<Piece> take(std::uint64_t wr_id);
  // Up to so many of those that are outstanding may hold a message in part, whose sender gave up.
  void accept_partial(std::size_t most);
  Tracked& landing() { return landing_; }

 private:
  struct Posted {
    std::size_t slot;
    std::vector<Piece> pieces;
  };
  const std::size_t slot_bytes_;
  const bool is_shared_;
  Tracked landing_;
  std::vector<std::size_t> free_slots_;
  std::map<std::uint64_t, Posted> outstanding_;
  std::size_t posted_ = 0;
};

}  // namespace nicless::sim
