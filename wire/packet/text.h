// SPDX-License-Identifier: MIT
// printf into a std::string, for the lines of print.h: the toolchain floor has no std::format.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace nicless::wire {

// One call adds at most 255 characters.
[[gnu::format(printf, 2, 3)]] inline void append(std::string& text, const char* format, ...) {
  char buffer[256];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  text += buffer;
}

inline void append_hex(std::string& text, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) append(text, "%02x", std::to_integer<unsigned>(b));
}

}  // namespace nicless::wire
