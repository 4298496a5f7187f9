// SPDX-License-Identifier: MIT
// The state of the devices' ports, and who hears when it changes: IBV_EVENT_PORT_ERR and IBV_EVENT_PORT_ACTIVE in
// every open context of the device (ibv_get_async_event(3)). A port is active while one of the interfaces that gave it
// addresses is up; its GIDs stay what they were. Thread-safe.
#pragma once

#include "provider/context.h"

namespace nicless::provider {

// A context hears of its port from here until it is forgotten.
void add_listener(Context& context);
void forget_listener(Context& context);

// The machine's interfaces have changed. On the progress thread.
void look_at_ports();

}  // namespace nicless::provider
