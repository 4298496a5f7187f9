// SPDX-License-Identifier: MIT
// Ids of datagram services (RDMA_PS_UDP, RDMA_PS_IPOIB): rdma_connect(3) asks the service for its queue pair and Q_Key,
// rdma_accept(3) and rdma_reject(3) answer. There is no connection: nothing is established at the answering end, and
// nothing is released at either. Event contents are those of the Linux kernel.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <span>

#include "cm/agent.h"
#include "cm/cm_id.h"

namespace nicless::cm {

Result<void> connect_datagram(CmId& id, const rdma_conn_param* param);
Result<void> accept_datagram(CmId& id, const rdma_conn_param* param);
Result<void> reject_datagram(CmId& id, std::span<const std::byte> private_data);

// What an address handle to that GID needs, along the id's path.
ibv_ah_attr address_handle_of(const CmId& id, const wire::Gid& destination);

// The id is being destroyed: its question is dropped, a request that waits for it is refused.
void release_datagram(Agent& agent, CmId& id) REQUIRES(agent.mutex);

// What became of its question, as an event for the id. The agent's lock is held.
void report(CmId& id, const Resolution& resolution);
// A new SIDR_REQ has come. False: nobody listens there.
bool sidr_request_arrived(Agent& agent, MadPath path, const wire::CmMessage& message) REQUIRES(agent.mutex);

}  // namespace nicless::cm
