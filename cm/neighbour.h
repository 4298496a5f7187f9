// SPDX-License-Identifier: MIT
// Whether the kernel has the link address of a host, or of the router that leads to it: asked by netlink
// (rtnetlink(7)), without a packet and without root. Any thread.
#pragma once

#include <sys/socket.h>

namespace nicless::cm {

// False: not yet, or nobody says.
bool is_known_neighbour(const sockaddr& source, const sockaddr& destination);

}  // namespace nicless::cm
