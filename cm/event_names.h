// SPDX-License-Identifier: MIT
#pragma once

#include <rdma/rdma_cma.h>

#include <string>

namespace nicless::cm {

// rdma_event_str(3): the enumerator's name, "UNKNOWN EVENT" for a number that has none.
const char* name_of(rdma_cm_event_type event);

// The status of a REJECTED event in words. IBTA table 108.
std::string reject_reason(int status);
// The positive status of an UNREACHABLE event, a SIDR_REP's, in words. IBTA table 120.
std::string sidr_status(int status);
// The negative one: nobody answered, or what sendmsg(2) said.
std::string unreachable_why(int status);

}  // namespace nicless::cm
