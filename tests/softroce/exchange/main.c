// SPDX-License-Identifier: MIT
/* One reliable connection of rdma_cm: each operation of verbs over it, and each way in which one goes wrong.
 *
 *   exchange respond ADDRESS PORT SCENARIO     waits at its own ADDRESS for the other end
 *   exchange request ADDRESS PORT SCENARIO
 *   exchange list                              the names of the scenarios
 *
 * Both ends are given the same scenario and know what each of them has to see: the status and the fields of every
 * completion and event, and every byte of memory. Where Soft-RoCE does something else on purpose or by mistake, the
 * scenario says so. An end that has seen all of it prints "as expected" with the path MTU and ends with 0; else it
 * prints one sentence and ends with 1.
 *
 * An ordinary verbs program: it runs on the kernel's RDMA as on nicless.
 */
#include <stdio.h>
#include <string.h>

#include "tests/softroce/exchange/scenarios.h"

static const struct scenario {
  const char* name;
  void (*respond)(struct end*);
  void (*request)(struct end*, const char* address, const char* port);
} kScenarios[] = {
    {"operations", respond_to_operations, request_operations},
    {"fenced", respond_to_fenced, request_fenced},
    {"bursts", respond_to_bursts, request_bursts},
    {"solicited", respond_to_solicited, request_solicited},
    {"window", respond_with_window, request_through_window},
    {"late-receive", respond_late, request_from_late},
    {"no-receive", respond_never, request_from_never},
    {"no-listener", respond_elsewhere, request_without_listener},
    {"rejected", respond_by_rejecting, request_rejected},
    {"destroyed", respond_by_destroying, request_destroyed},
    {"requester-killed", respond_and_survive, request_and_die},
    {"responder-killed", respond_and_die, request_and_survive},
    {"requester-exits", respond_and_stay, request_and_leave},
    {"responder-exits", respond_and_leave, request_and_stay},
};
enum { kScenarioCount = sizeof kScenarios / sizeof *kScenarios };

static int list(void) {
  for (int i = 0; i < kScenarioCount; i++) printf("%s\n", kScenarios[i].name);
  for (unsigned i = 0; fault_name(i) != NULL; i++) printf("%s\n", fault_name(i));
  return 0;
}

static void respond(struct end* end, const char* name) {
  for (int i = 0; i < kScenarioCount; i++) {
    if (strcmp(kScenarios[i].name, name) == 0) return kScenarios[i].respond(end);
  }
  respond_to_fault(end, name);
}

static void request(struct end* end, const char* address, const char* port, const char* name) {
  for (int i = 0; i < kScenarioCount; i++) {
    if (strcmp(kScenarios[i].name, name) == 0) return kScenarios[i].request(end, address, port);
  }
  request_fault(end, address, port, name);
}

static bool is_known(const char* name) {
  for (int i = 0; i < kScenarioCount; i++) {
    if (strcmp(kScenarios[i].name, name) == 0) return true;
  }
  return has_fault(name);
}

int main(int count, char** words) {
  if (count == 2 && strcmp(words[1], "list") == 0) return list();
  const bool is_responder = count == 5 && strcmp(words[1], "respond") == 0;
  if (count != 5 || !(is_responder || strcmp(words[1], "request") == 0) || !is_known(words[4])) {
    fprintf(stderr, "exchange respond|request ADDRESS PORT SCENARIO, or exchange list\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct end end = {.retry_count = 7};
  if (is_responder) {
    listen_at(&end, words[2], words[3]);
    respond(&end, words[4]);
  } else {
    request(&end, words[2], words[3], words[4]);
  }
  printf("as expected, at path MTU %u\n", end.path_mtu);
  return 0;
}
