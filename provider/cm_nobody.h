// SPDX-License-Identifier: MIT
// The connection manager of a process that has none: in strict RoCE v2 mode QP 1 of an address is the process's own,
// and peers ask it whether or not librdmacm.so.1 is there. It says what the kernel's says where nobody listens
// (wire/packet/cm_answers.h). librdmacm's own takes its place when it registers.
#pragma once

#include "provider/private.h"

namespace nicless::provider {

// For CmDesk::set_agent, with the Runtime as the agent.
const nicless_cm_agent& cm_of_nobody();

}  // namespace nicless::provider
