// SPDX-License-Identifier: MIT
// Strict RoCE v2, the mode that talks to hardware and to the Linux kernel's Soft-RoCE: everything of the process goes
// through UDP port 4791, its connection manager through QP 1 there, and a QPN is any number. So an address serves one
// process. Asked for by NICLESS_ROCEV2=1; wire/addressing.h says what follows from it. Any thread.
#pragma once

#include "queue/result.h"
#include "wire/addressing.h"
#include "wire/io/udp_socket.h"

namespace nicless::provider {

// NICLESS_ROCEV2, read once: 1 is yes; unset, empty and 0 are no. Anything else: no, and a sentence.
bool is_rocev2();
// For the process's ports. In strict mode numbers begin at random: another time at each call.
wire::Addressing addressing();

// Where the process's socket is bound: to the address that its devices have if it is one alone (NICLESS_DEVICES names
// it), else to all.
wire::SocketConfig rocev2_address();

// bind(2)'s error, and what a person can do about it.
queue::Error explain_taken_address(const queue::Error& error);

}  // namespace nicless::provider
