// SPDX-License-Identifier: MIT
// Queue pair attributes between verbs' form and the transport's. Pure functions.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "provider/device.h"
#include "queue/result.h"
#include "wire/qp/attributes.h"

namespace nicless::provider {

// What the mask names, converted. EINVAL: a port, P_Key index, MTU or address vector that this device does not have.
queue::Result<wire::QpAttributes> attributes_of(const Device& device, const ibv_qp_attr& attr, std::uint32_t mask);

// Copies what the mask names, for ibv_query_qp to give back.
void remember(const ibv_qp_attr& from, std::uint32_t mask, ibv_qp_attr& to);
// Puts what the transport knows better over what was remembered.
void refresh(const wire::QpAttributes& from, ibv_qp_attr& to);

}  // namespace nicless::provider
