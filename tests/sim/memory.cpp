// SPDX-License-Identifier: MIT
#include "tests/sim/memory.h"

#include <algorithm>
#include <cstring>

namespace nicless::sim {

std::vector<Piece> random_pieces(queue::Rng& rng, std::size_t start, std::size_t length, std::size_t pieces_max) {
  if (length == 0 && rng.chance(0.5)) return {};
  const std::size_t count = rng.chance(0.5) ? 1 : 1 + rng.below(static_cast<std::uint32_t>(pieces_max));
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_last = i + 1 == count;
    const std::size_t piece = is_last ? length : rng.below(static_cast<std::uint32_t>(length / 2) + 1);
    pieces.push_back({start, piece});
    length -= piece;
    start += piece + (count > 1 ? rng.below(kGapMax) : 0);
  }
  return pieces;
}

Tracked::Tracked(Side& side, std::size_t size, std::uint32_t access) : buffer_(side.make_buffer(size, access)) {
  expected_.assign(buffer_.bytes().begin(), buffer_.bytes().end());
}

std::vector<queue::Sge> Tracked::sges(const std::vector<Piece>& pieces) const {
  std::vector<queue::Sge> list;
  for (const Piece& piece : pieces) list.push_back(buffer_.sge(piece.offset, piece.length));
  return list;
}

void Tracked::fill(queue::Rng& rng) {
  for (std::byte& byte : buffer_.bytes()) byte = static_cast<std::byte>(rng.next_u32());
  expected_.assign(buffer_.bytes().begin(), buffer_.bytes().end());
}

void Tracked::expect(std::size_t offset, std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), expected_.begin() + static_cast<std::ptrdiff_t>(offset));
}

void Tracked::accept(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) expect(piece.offset, buffer_.bytes().subspan(piece.offset, piece.length));
}

bool Tracked::is_as_expected(const std::vector<Piece>& pieces) {
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return holds(piece.offset, std::span(expected_).subspan(piece.offset, piece.length));
  });
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
      exposed(side, shared_bytes, queue::kAccessLocalWrite | queue::kAccessRemoteWrite | queue::kAccessMwBind),
      counters(side, kCounters * sizeof(std::uint64_t), queue::kAccessLocalWrite | queue::kAccessRemoteAtomic),
      landing(side, landing_bytes, queue::kAccessLocalWrite) {}

std::optional<std::string> Arena::first_difference() {
  const std::pair<const char*, Tracked*> all[] = {{"source", &source},
                                                  {"readable", &readable},
                                                  {"exposed", &exposed},
                                                  {"counters", &counters},
                                                  {"landing", &landing}};
  for (const auto& [name, memory] : all) {
    if (const auto offset = memory->first_difference()) return name + (", offset " + std::to_string(*offset));
  }
  return std::nullopt;
}

std::uint64_t word_at(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

std::span<const std::byte> bytes_of(const std::uint64_t& word) {
  return std::as_bytes(std::span(&word, 1));
}

}  // namespace nicless::sim
