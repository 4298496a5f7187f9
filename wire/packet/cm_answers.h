// SPDX-License-Identifier: MIT
// What a connection manager says to messages that belong to no connection of its: pure functions of the message. Used
// by librdmacm's, and by a process that has none and yet owns QP 1 (strict RoCE v2). IBTA 12.9.8.
#pragma once

#include <optional>

#include "wire/packet/mad.h"

namespace nicless::wire {

// The REJ to a REQ.
CmMessage refusal(const CmMessage& request, RejReason reason);

// The polite answer where nobody listens and no connection is known: a REQ and a SIDR_REQ hear that there is no such
// service, a DREQ gets its DREP, who sends a REP or an RTU that there is no such connection. Nothing for those that
// want no answer.
std::optional<CmMessage> answer_of_nobody(const CmMessage& message);

}  // namespace nicless::wire
