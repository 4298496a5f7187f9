// SPDX-License-Identifier: MIT
// The read requests a responder has answered or is answering, the last max_dest_rd_atomic of them: what a duplicate of
// one is held against before it is answered again. IBTA 9.7.5.1.2 (duplicate RDMA READ). Port-bound.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/packet/reth.h"

namespace nicless::wire {

class Replay {
 public:
  struct Read {
    std::uint64_t first_psn = 0;  // unwrapped
    std::uint64_t packets = 0;
    Reth reth;  // as the request had it
  };

  void start(std::uint32_t depth);
  void add(const Read& read);  // the oldest falls out when full

  // A duplicate request may ask for the whole read or for the rest of it from a packet on, with address and length
  // advanced. Nothing for a request that is neither: it is dropped.
  const Read* find(std::uint64_t psn, const Reth& reth, std::uint32_t mtu_bytes) const;

 private:
  std::vector<Read> reads_;  // a ring
  std::size_t next_ = 0;
};

}  // namespace nicless::wire
