// SPDX-License-Identifier: MIT
// What a program says in a rdma_conn_param, read in one place: rdma_connect(3), rdma_accept(3). Pure.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cm/cm_id.h"

namespace nicless::cm {

bool is_datagram(const CmId& id);  // unconnected: SIDR instead of REQ and REP

// param may be null in all of them.
std::span<const std::byte> private_data_of(const rdma_conn_param* param);
// The id's own queue pair, or the one that the program names.
std::uint32_t qp_number(const CmId& id, const rdma_conn_param* param);
bool uses_srq(const CmId& id, const rdma_conn_param* param);

// EINVAL: more private data than the message holds.
Result<void> check_length(std::size_t bytes, std::size_t bytes_max);

}  // namespace nicless::cm
