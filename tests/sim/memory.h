// SPDX-License-Identifier: MIT
// Registered memory under the oracle's eyes: each buffer beside a copy of what it must hold. At rest both are equal,
// but for what a broken connection may have left half done. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue/rng.h"
#include "tests/sim/side.h"

namespace nicless::sim {

// Pieces of one buffer, in the order of a scatter-gather list.
struct Piece {
  std::size_t offset = 0;
  std::size_t length = 0;
};

// Cuts `length` bytes into up to `pieces_max` pieces, some of them empty, with gaps of up to kGapMax bytes between
// them. None at all, where there is nothing to cut, half of the time.
inline constexpr std::size_t kGapMax = 16;
std::vector<Piece> random_pieces(queue::Rng& rng, std::size_t start, std::size_t length, std::size_t pieces_max);

// Calls `use(piece offset, bytes)` for each part of a message as a scatter list takes it up.
template <typename Use>
void scatter(const std::vector<Piece>& pieces, std::span<const std::byte> message, Use use) {
  for (const Piece& piece : pieces) {
    const std::size_t count = std::min(piece.length, message.size());
    use(piece.offset, message.first(count));
    message = message.subspan(count);
  }
}

// A buffer and what it must hold at rest.
class Tracked {
 public:
  Tracked(Side& side, std::size_t size, std::uint32_t access);
  Buffer& buffer() { return buffer_; }
  std::vector<queue::Sge> sges(const std::vector<Piece>& pieces) const;
  void fill(queue::Rng& rng);  // random content, as the program itself would write it
  void expect(std::size_t offset, std::span<const std::byte> bytes);
  void accept(const std::vector<Piece>& pieces);  // what is there now, whatever it is
  bool is_as_expected(const std::vector<Piece>& pieces);
  void ignore(std::size_t offset, std::size_t length) { ignored_.emplace_back(offset, length); }
  bool holds(std::size_t offset, std::span<const std::byte> bytes);  // now
  std::optional<std::size_t> first_difference();                     // offset of a byte that is not as expected

 private:
  Buffer buffer_;
  std::vector<std::byte> expected_;
  std::vector<std::pair<std::size_t, std::size_t>> ignored_;
};

// The memory of one end of a connection.
struct Arena {
  Arena(Side& side, std::size_t shared_bytes, std::size_t landing_bytes);
  // "exposed, offset 17": the first byte that is not as it must be, in any of them.
  std::optional<std::string> first_difference();
  Tracked source;    // gathered from; nobody writes it
  Tracked readable;  // the peer reads it; nobody writes it
  Tracked exposed;   // the peer writes it
  Tracked counters;  // 64-bit words on which the peer does atomics
  Tracked landing;   // what reads and atomics bring
};

inline constexpr std::size_t kCounters = 16;

std::uint64_t word_at(std::span<const std::byte> bytes);  // the first eight, in this machine's order
std::span<const std::byte> bytes_of(const std::uint64_t& word);

}  // namespace nicless::sim
