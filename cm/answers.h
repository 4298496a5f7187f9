// SPDX-License-Identifier: MIT
// Which connection a message belongs to, and which requests nobody here can serve. IBTA 12.9.8; what is said to those
// that belong to none is in wire/packet/cm_answers.h.
#pragma once

#include <optional>

#include "cm/connection_table.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

// The connection that the message names; null if there is none or the message comes from another address than its
// peer's.
ConnectionEntry* find_addressee(ConnectionTable& connections, const wire::Gid& from, const wire::CmMessage& message);

// Why this request cannot be served by anybody here; nothing if it can.
std::optional<wire::RejReason> refuses(const wire::CmReq& request);

}  // namespace nicless::cm
