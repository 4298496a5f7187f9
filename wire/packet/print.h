// SPDX-License-Identifier: MIT
// One line of text for any packet: logs, test failures and `nicless trace` share it.
//
//   10.77.0.2:4791>10.77.0.1:4791 RC_SEND_LAST_IMM qp=000054 psn=f04f0c a=1 se=0 pad=0 imm=01020304 len=952
#pragma once

#include <span>
#include <string>

#include "wire/packet/mad.h"
#include "wire/packet/packet.h"

namespace nicless::wire {

// A datagram to QP 1 goes on with the management message in it:
//
//   ... len=256 CM RTU tid=0000000222d61f9a lcid=9a1fd622 rcid=af6dc14e pd=
std::string to_string(const PacketView& packet);
std::string to_string(const CmMessage& message);
// Decodes first; a datagram that is none says why.
std::string datagram_to_string(std::span<const std::byte> bytes, const Endpoint& from, const Endpoint& to);

}  // namespace nicless::wire
