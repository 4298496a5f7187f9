// SPDX-License-Identifier: MIT
// ibv_modify_qp as a table: for each transport and each edge from state to state, which attributes must be given and
// which may be. See ibv_modify_qp(3); IBTA 11.2.5.2 tables 91 to 96. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "queue/result.h"
#include "wire/qp/attributes.h"
#include "wire/qp/transport.h"

namespace nicless::wire {

// EINVAL with the sentence: no such edge ("RESET->RTS is not a transition, go through INIT and RTR"), missing
// attributes by name ("INIT->RTR: missing IBV_QP_MIN_RNR_TIMER"), or attributes that the edge does not take.
queue::Result<void> check_transition(Transport transport, QpState from, QpState to, std::uint32_t mask);

// Attributes of the half that an XRC queue pair lacks. A program may name them, and they are not looked at.
std::uint32_t ignored_attributes(Transport transport);

// "IBV_QP_PATH_MTU, IBV_QP_DEST_QPN" for a set of bits.
std::string names_of(std::uint32_t mask);

}  // namespace nicless::wire
