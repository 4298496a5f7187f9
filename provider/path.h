// SPDX-License-Identifier: MIT
// An address vector of verbs as the path that packets take. Pure functions.
#pragma once

#include <infiniband/verbs.h>

#include "provider/device.h"
#include "queue/result.h"
#include "wire/qp/attributes.h"

namespace nicless::provider {

// EINVAL: no GRH (RoCE has no other addresses; lid.h has a way), a port that is not there, no address at sgid_index, a
// destination GID of the other IP version.
queue::Result<wire::Path> path_of(const Device& device, const ibv_ah_attr& attr);

}  // namespace nicless::provider
