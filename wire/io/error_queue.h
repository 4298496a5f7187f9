// SPDX-License-Identifier: MIT
// What ICMP said about datagrams that left a socket: the kernel keeps it in the socket's error queue (ip(7),
// IP_RECVERR). Port-bound.
#pragma once

#include <vector>

#include "wire/io/udp_socket.h"

namespace nicless::wire {

// Empties the error queue. Appends to `unreachable` the destinations where no socket has the port (ICMP type 3 code 3,
// ICMPv6 type 1 code 4); everything else is dropped, as the transport finds out by itself.
void drain_error_queue(const UdpSocket& socket, std::vector<Endpoint>& unreachable);

}  // namespace nicless::wire
