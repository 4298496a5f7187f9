// SPDX-License-Identifier: MIT
// Bytes as tests write and read them: hexadecimal text, and headers encoded into a buffer that was not clean.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "wire/packet/endpoint.h"

namespace nicless::test {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  throw std::invalid_argument("not a hexadecimal digit");
}

// "0a 0b0c" -> three bytes; blanks are for the reader.
inline std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  int high = -1;
  for (const char c : hex) {
    if (c == ' ' || c == '\n') continue;
    if (high < 0) {
      high = hex_digit(c);
    } else {
      bytes.push_back(static_cast<std::byte>(high * 16 + hex_digit(c)));
      high = -1;
    }
  }
  if (high >= 0) throw std::invalid_argument("half a byte");
  return bytes;
}

inline std::string hex_of(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const std::byte b : bytes) {
    hex += kDigits[std::to_integer<unsigned>(b) >> 4];
    hex += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return hex;
}

// A header encoded into a buffer full of 0xa5, so that a byte it forgets to write shows.
template <typename Header>
std::array<std::byte, Header::kSize> encoded(const Header& header) {
  std::array<std::byte, Header::kSize> out;
  out.fill(std::byte{0xa5});
  header.encode(out);
  return out;
}

template <typename Header>
std::string encoded_hex(const Header& header) {
  return hex_of(encoded(header));
}

template <typename Header>
Header decoded(std::string_view hex) {
  const std::vector<std::byte> bytes = bytes_of(hex);
  const std::span<const std::byte> view = bytes;
  return Header::decode(view.first<Header::kSize>());
}

inline wire::Gid ipv4(unsigned a, unsigned b, unsigned c, unsigned d) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = static_cast<std::byte>(a);
  gid.bytes[13] = static_cast<std::byte>(b);
  gid.bytes[14] = static_cast<std::byte>(c);
  gid.bytes[15] = static_cast<std::byte>(d);
  return gid;
}

inline wire::Gid gid_of(std::string_view hex) {
  wire::Gid gid;
  const std::vector<std::byte> bytes = bytes_of(hex);
  if (bytes.size() != gid.bytes.size()) throw std::invalid_argument("a GID has 16 bytes");
  for (std::size_t i = 0; i < bytes.size(); ++i) gid.bytes[i] = bytes[i];
  return gid;
}

}  // namespace nicless::test
