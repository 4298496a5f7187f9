// SPDX-License-Identifier: MIT
// The connection manager's messages in the captures of the Linux kernel's, in the order in which they were sent.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/golden.h"
#include "wire/packet/mad.h"
#include "wire/packet/packet.h"

namespace nicless::cm::test {

template <typename Body>
struct Captured {
  wire::CmMessage message;
  const Body& body() const { return std::get<Body>(message.body); }
};

inline std::vector<wire::CmMessage> cm_messages(const std::string& name) {
  std::vector<wire::CmMessage> messages;
  for (const nicless::test::GoldenPacket& packet : nicless::test::golden_packets(name)) {
    const wire::Decoded decoded = wire::decode(packet.bytes);
    if (!decoded || decoded.packet.payload.size() != wire::CmMessage::kSize) continue;
    const auto cm = wire::decode_cm(decoded.packet.payload.first<wire::CmMessage::kSize>());
    if (cm) messages.push_back(cm.message);
  }
  return messages;
}

// The n-th message of that kind (from 0).
template <typename Body>
Captured<Body> find(const std::vector<wire::CmMessage>& messages, int nth = 0) {
  for (const wire::CmMessage& message : messages)
    if (std::holds_alternative<Body>(message.body) && nth-- == 0) return {message};
  FAIL("no such message in the capture");
  return {};
}

}  // namespace nicless::cm::test
