// SPDX-License-Identifier: MIT
// Big-endian fields at offsets known when the program is built: FixedReader and FixedWriter refuse to compile where an
// offset leaves the header. The only place that turns packet bytes into numbers and back. Views: they own nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nicless::wire {

template <std::size_t N>
class FixedReader {
 public:
  explicit constexpr FixedReader(std::span<const std::byte, N> bytes) : bytes_(bytes) {}

  template <std::size_t Offset>
  constexpr std::uint8_t u8() const {
    return static_cast<std::uint8_t>(number<Offset, 1>());
  }
  template <std::size_t Offset>
  constexpr std::uint16_t u16() const {
    return static_cast<std::uint16_t>(number<Offset, 2>());
  }
  template <std::size_t Offset>
  constexpr std::uint32_t u24() const {
    return static_cast<std::uint32_t>(number<Offset, 3>());
  }
  template <std::size_t Offset>
  constexpr std::uint32_t u32() const {
    return static_cast<std::uint32_t>(number<Offset, 4>());
  }
  template <std::size_t Offset>
  constexpr std::uint64_t u64() const {
    return number<Offset, 8>();
  }
  template <std::size_t Offset, std::size_t Count>
  constexpr std::span<const std::byte, Count> view() const {
    static_assert(Offset + Count <= N, "the field leaves the header");
    return bytes_.template subspan<Offset, Count>();
  }
  template <std::size_t Offset, std::size_t Count>
  constexpr std::array<std::byte, Count> array() const {
    std::array<std::byte, Count> out{};
    std::ranges::copy(view<Offset, Count>(), out.begin());
    return out;
  }

 private:
  template <std::size_t Offset, std::size_t Count>
  constexpr std::uint64_t number() const {
    static_assert(Offset + Count <= N, "the field leaves the header");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < Count; ++i) value = (value << 8) | std::to_integer<std::uint64_t>(bytes_[Offset + i]);
    return value;
  }

  std::span<const std::byte, N> bytes_;
};

// Clears what it is given, so that reserved bytes go out as zeros.
template <std::size_t N>
class FixedWriter {
 public:
  explicit constexpr FixedWriter(std::span<std::byte, N> bytes) : bytes_(bytes) {
    std::ranges::fill(bytes_, std::byte{0});
  }

  template <std::size_t Offset>
  constexpr void u8(std::uint8_t value) {
    number<Offset, 1>(value);
  }
  template <std::size_t Offset>
  constexpr void u16(std::uint16_t value) {
    number<Offset, 2>(value);
  }
  // Takes the low 24 bits.
  template <std::size_t Offset>
  constexpr void u24(std::uint32_t value) {
    number<Offset, 3>(value);
  }
  template <std::size_t Offset>
  constexpr void u32(std::uint32_t value) {
    number<Offset, 4>(value);
  }
  template <std::size_t Offset>
  constexpr void u64(std::uint64_t value) {
    number<Offset, 8>(value);
  }
  template <std::size_t Offset, std::size_t Count>
  constexpr std::span<std::byte, Count> view() const {
    static_assert(Offset + Count <= N, "the field leaves the header");
    return bytes_.template subspan<Offset, Count>();
  }
  template <std::size_t Offset, std::size_t Count>
  constexpr void array(const std::array<std::byte, Count>& in) {
    std::ranges::copy(in, view<Offset, Count>().begin());
  }

 private:
  template <std::size_t Offset, std::size_t Count>
  constexpr void number(std::uint64_t value) {
    static_assert(Offset + Count <= N, "the field leaves the header");
    for (std::size_t i = 0; i < Count; ++i) {
      bytes_[Offset + i] = static_cast<std::byte>((value >> (8 * (Count - 1 - i))) & 0xff);
    }
  }

  std::span<std::byte, N> bytes_;
};

}  // namespace nicless::wire
