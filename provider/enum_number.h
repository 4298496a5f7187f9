// SPDX-License-Identifier: MIT
// The number in an enum that a program wrote, which may be none of the enum's: reading it as the enum is undefined.
#pragma once

#include <cstring>
#include <type_traits>

namespace nicless::provider {

template <typename Enum>
std::underlying_type_t<Enum> number_of(const Enum& from_program) {
  std::underlying_type_t<Enum> number;
  std::memcpy(&number, &from_program, sizeof number);
  return number;
}

}  // namespace nicless::provider
