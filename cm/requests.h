// SPDX-License-Identifier: MIT
// What an arriving request makes, of a connection (REQ) or of a datagram service (SIDR_REQ): an id, and CONNECT_REQUEST
// for its listener. Called with the agent's lock held.
#pragma once

#include "cm/agent.h"
#include "cm/event_channel.h"
#include "wire/packet/mad.h"

namespace nicless::cm {

// Who asks for whom: of the message's CMA header and service id.
struct Asker {
  wire::CmaHeader cma;
  std::uint16_t service_port = 0;
};

// The id, bound to its device, not yet in any table; `path` becomes the answers' way, from the process's own endpoint,
// as the listener's may go while the id lives. Null: no device has the address that was asked, or there is no endpoint.
CmId* make_requested_id(Agent& agent, CmId& listener, MadPath& path, const Asker& asker) REQUIRES(agent.mutex);

// What the asker's program says, of all the private data of the message: what follows the CMA header. All of it where
// the listener has an AF_IB address, as in the kernel: between such no header is sent.
std::span<const std::byte> user_data(const CmId& listener, std::span<const std::byte> whole);

// CONNECT_REQUEST for that id, as the program gets it; param is the caller's to fill before report().
CmEvent* make_request_event(CmId& listener, CmId& requested);

}  // namespace nicless::cm
