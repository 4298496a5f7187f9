// SPDX-License-Identifier: MIT
// The kinds of queue pair a program can have. An extended reliable connection (XRC) runs one way: its two ends are of
// different kinds, which send and receive packets of one service. IBTA 9.2.1, A14.
#pragma once

#include <cstdint>

#include "wire/packet/opcode.h"

namespace nicless::wire {

enum class Transport : std::uint8_t { Rc, Uc, Ud, XrcInitiator, XrcTarget };

// What the opcodes of its packets say.
constexpr Service service_of(Transport transport) {
  switch (transport) {
    case Transport::Rc:
      break;
    case Transport::Uc:
      return Service::Uc;
    case Transport::Ud:
      return Service::Ud;
    case Transport::XrcInitiator:
    case Transport::XrcTarget:
      return Service::Xrc;
  }
  return Service::Rc;
}

}  // namespace nicless::wire
