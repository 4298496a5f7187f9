// SPDX-License-Identifier: MIT
// What this provider lacks: every slot that a program may jump through is filled with a function that refuses, so that
// no verb is ever a jump to nowhere.
#pragma once

#include "provider/verbs65.h"

namespace nicless::provider {

// Fills every function slot of the context: those of ibv_context_ops and those of the extended context. verbs_ops.cpp
// then puts the real functions over them.
void fill_with_refusals(nicless_verbs_context& context);

}  // namespace nicless::provider
