// SPDX-License-Identifier: MIT
// NICLESS_SOCKET_BUFFER: how many bytes of buffer the sockets of the process ask the system for. Any thread.
#pragma once

#include "queue/result.h"

namespace nicless::provider {

// What the text says, 0 included; null or empty: the default. EINVAL for anything but a number of bytes.
queue::Result<int> socket_buffer_from(const char* text);

// The environment's, read once. What is not written right counts as the default, and is a sentence in the log.
int socket_buffer_bytes();

}  // namespace nicless::provider
