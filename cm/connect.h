// SPDX-License-Identifier: MIT
// Connecting and parting: rdma_connect(3), rdma_listen(3), rdma_accept(3), rdma_reject(3), rdma_establish(3),
// rdma_notify(3), rdma_disconnect(3). What the messages hold is what the Linux kernel puts there.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <span>

#include "cm/cm_id.h"

namespace nicless::cm {

Result<void> connect(CmId& id, const rdma_conn_param* param);
Result<void> listen(CmId& id, int backlog);
Result<void> accept(CmId& id, const rdma_conn_param* param);
Result<void> reject(CmId& id, std::span<const std::byte> private_data,
                    wire::RejReason reason = wire::RejReason::ConsumerDefined);
Result<void> disconnect(CmId& id);
Result<void> notify(CmId& id, ibv_event_type event);

// The peer has accepted: the queue pair, if the id has one, goes to RTS, and the RTU leaves.
Result<void> establish(CmId& id);

// CONNECT_REQUEST is being fetched: the new id gets what it inherits from its listener. False: its listener's channel
// cannot serve it.
bool fetch_request(CmEvent& event);

}  // namespace nicless::cm
