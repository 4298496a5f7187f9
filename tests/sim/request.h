// SPDX-License-Identifier: MIT
// One request of a simulated program, all of it decided before it is posted: what it moves, and what must become of it.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sim/memory.h"

namespace nicless::sim {

// The mistake in a request or in the receive that is posted for it.
enum class Mistake : std::uint8_t {
  None,
  BadLkey,     // in one entry of its list
  BadRkey,     // of what it reads, writes or adds to
  NoRight,     // a region that the peer did not open for that
  Misaligned,  // an atomic off a multiple of eight
  TooLong,     // for the receive
  BadReceive,  // the receive's list has a bad key
};
inline constexpr int kMistakes = 7;

struct Request {
  queue::SendOpcode opcode = queue::SendOpcode::Send;
  bool signaled = true;
  bool solicited = false;
  bool fence = false;
  bool is_inline = false;
  bool is_forward = false;   // sends what a read or an atomic before it brings: pieces of `landing`, and fenced
  bool uses_window = false;  // a write by the key of the peer's memory window
  bool is_common = false;    // an atomic on the one word that all connections to that host add to
  std::uint32_t imm = 0;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  std::vector<std::byte> message;  // what it moves: sent, written, read, or what an atomic brings back
  std::vector<Piece> pieces;       // of `source` for sends and writes, of `landing` for what brings data
  std::size_t remote_offset = 0;   // in `exposed` for writes, `readable` for reads, `counters` for atomics
  Mistake mistake = Mistake::None;
  std::size_t gate = 0;  // posted only when so many requests of the peer have completed

  bool is_write() const { return opcode == queue::SendOpcode::Write || opcode == queue::SendOpcode::WriteImm; }
  bool is_read() const { return opcode == queue::SendOpcode::Read; }
  bool is_atomic() const { return opcode == queue::SendOpcode::CompareSwap || opcode == queue::SendOpcode::FetchAdd; }
  bool brings_data() const { return is_read() || is_atomic(); }
  bool is_local() const { return opcode == queue::SendOpcode::BindMw || opcode == queue::SendOpcode::LocalInv; }
  bool has_imm() const { return opcode == queue::SendOpcode::WriteImm || opcode == queue::SendOpcode::SendImm; }
  bool takes_receive() const { return opcode != queue::SendOpcode::Write && !brings_data() && !is_local(); }
};

// How a request with a mistake completes, and the receive posted for it.
queue::WcStatus status_of(Mistake mistake);
queue::WcStatus receive_status_of(Mistake mistake);

}  // namespace nicless::sim
