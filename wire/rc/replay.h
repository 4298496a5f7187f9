// SPDX-License-Identifier: MIT
// The read and atomic requests a responder has answered or is answering, the last max_dest_rd_atomic of them: what a
// duplicate of one is held against before it is answered again. A read is carried out again, an atomic never: its first
// result is kept. IBTA 9.7.5.1.2 (duplicate RDMA READ and ATOMIC). Port-bound.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "wire/packet/atomic_eth.h"
#include "wire/packet/reth.h"

namespace nicless::wire {

class Replay {
 public:
  struct Read {
    std::uint64_t first_psn = 0;  // unwrapped
    std::uint64_t packets = 0;
    Reth reth;  // as the request had it
  };
  struct Atomic {
    std::uint64_t psn = 0;  // unwrapped
    AtomicEth request;
    std::uint64_t original = 0;  // what was there before
  };

  void start(std::uint32_t depth);
  void resize(std::uint32_t depth);  // keeps the newest
  void add(const Read& read);        // the oldest falls out when full
  void add(const Atomic& atomic);

  // A duplicate request may ask for the whole read or for the rest of it from a packet on, with address and length
  // advanced. Nothing for a request that is neither: it is dropped.
  const Read* find(std::uint64_t psn, const Reth& reth, std::uint32_t mtu_bytes) const;
  const Atomic* find(std::uint64_t psn, const AtomicEth& request) const;

 private:
  using Entry = std::variant<Read, Atomic>;
  void add_entry(const Entry& entry);

  std::vector<Entry> entries_;  // a ring
  std::size_t next_ = 0;
};

}  // namespace nicless::wire
