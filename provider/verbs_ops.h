// SPDX-License-Identifier: MIT
// The door that the inline functions of verbs.h jump through: the tables of a context.
#pragma once

#include "provider/verbs65.h"

namespace nicless::provider {

// Fills every slot of the context, its size and abi_compat; the rest of it belongs to open_device. The slots stay
// writable: programs replace some by their own.
void fill_ops(nicless_verbs_context& context);

}  // namespace nicless::provider
