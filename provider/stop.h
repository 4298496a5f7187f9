// SPDX-License-Identifier: MIT
// Before a queue pair stops.
#pragma once

#include "queue/types.h"

namespace nicless::provider {

struct Qp;

// How long after a request was first sent its answer is worth waiting for. An adapter answers in microseconds whatever
// its host does; a peer made of software has to get a processor first.
inline constexpr queue::Duration kAnswerPatience = std::chrono::milliseconds(100);

// On the way to ERR, RESET or out of existence: requests that have arrived at the peer would be flushed for want of
// an acknowledgement that is under way. Runs the engine until all that was sent before the call is answered, or was
// sent kAnswerPatience ago; who has sent nothing lately does not wait. Any thread, with no lock held.
void await_answers(Qp& qp);

}  // namespace nicless::provider
