// SPDX-License-Identifier: MIT
/* What two ends can go through together. Each function is one end's part, called on the only thread with an end that is
 * not connected yet, and returns when all was as it has to be (tests/softroce/exchange/end.h: what happens if not). */
#ifndef NICLESS_TESTS_SOFTROCE_EXCHANGE_SCENARIOS_H
#define NICLESS_TESTS_SOFTROCE_EXCHANGE_SCENARIOS_H

#include "tests/softroce/exchange/end.h"

// Every operation in every size, and each byte of the responder's target compared after each of them.
void respond_to_operations(struct end* end);
void request_operations(struct end* end, const char* address, const char* port);
void respond_to_fenced(struct end* end);
void request_fenced(struct end* end, const char* address, const char* port);

// Eight requests of all kinds, posted as one list, many times.
void respond_to_bursts(struct end* end);
void request_bursts(struct end* end, const char* address, const char* port);

// Which completion wakes a responder that waits for solicited ones only.
void respond_to_solicited(struct end* end);
void request_solicited(struct end* end, const char* address, const char* port);

// A memory window: bound, used, invalidated by a message, used in vain.
void respond_with_window(struct end* end);
void request_through_window(struct end* end, const char* address, const char* port);

// One request that fails, by its name in the table of faults.c.
bool has_fault(const char* name);
const char* fault_name(unsigned number);  // NULL behind the last
void respond_to_fault(struct end* end, const char* name);
void request_fault(struct end* end, const char* address, const char* port, const char* name);

// Receives that come late, or never.
void respond_late(struct end* end);
void request_from_late(struct end* end, const char* address, const char* port);
void respond_never(struct end* end);
void request_from_never(struct end* end, const char* address, const char* port);

// Connections that are refused. The second request is accepted.
void respond_elsewhere(struct end* end);
void request_without_listener(struct end* end, const char* address, const char* port);
void respond_by_rejecting(struct end* end);
void request_rejected(struct end* end, const char* address, const char* port);
void respond_by_destroying(struct end* end);
void request_destroyed(struct end* end, const char* address, const char* port);

// An end that is killed as it stands, and the one that is left.
void respond_and_die(struct end* end);
void request_and_die(struct end* end, const char* address, const char* port);
void respond_and_survive(struct end* end);
void request_and_survive(struct end* end, const char* address, const char* port);

// An end that exits without rdma_disconnect, and the one that is left.
void respond_and_leave(struct end* end);
void request_and_leave(struct end* end, const char* address, const char* port);
void respond_and_stay(struct end* end);
void request_and_stay(struct end* end, const char* address, const char* port);

#endif
