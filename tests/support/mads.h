// SPDX-License-Identifier: MIT
// Management datagrams as the traffic of tests that need no queue pair: whole ones, told apart by a number.
#pragma once

#include "wire/packet/mad.h"
#include "wire/ud/gsi.h"

namespace nicless::test {

inline wire::MadBytes numbered_mad(unsigned number) {
  wire::MadBytes bytes = wire::encode(wire::CmMessage{.tid = 1, .body = wire::CmRtu{}});
  bytes.back() = std::byte(number);
  return bytes;
}

inline unsigned number_of(const wire::MadBytes& bytes) {
  return std::to_integer<unsigned>(bytes.back());
}

}  // namespace nicless::test
