// SPDX-License-Identifier: MIT
// What is said to messages that belong to no connection, and which connection a message belongs to. IBTA 12.9.8.
#pragma once

#include <optional>

#include "cm/connection_table.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

// The connection that the message names; null if there is none or the message comes from another address than its
// peer's.
ConnectionEntry* find_addressee(ConnectionTable& connections, const wire::Gid& from, const wire::CmMessage& message);

wire::CmMessage refusal(const wire::CmMessage& request, wire::RejReason reason);
// Why this request cannot be served by anybody here; nothing if it can.
std::optional<wire::RejReason> refuses(const wire::CmReq& request);
// The polite answer to a message for which there is no connection: a DREQ gets its DREP, a SIDR_REQ hears that there is
// no such service. Nothing for those that want no answer.
std::optional<wire::CmMessage> answer_of_nobody(const wire::CmMessage& message);

}  // namespace nicless::cm
