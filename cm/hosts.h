// SPDX-License-Identifier: MIT
// Whether the hosts that addresses lead to are there: a HostSearch and the sockets that it looks through. Called with
// the agent's lock held.
#pragma once

#include <map>
#include <optional>

#include "cm/host_search.h"
#include "cm/route.h"

namespace nicless::cm {

class Hosts {
 public:
  // True: the host is there, or nothing tells that it is not; so it is at once for this machine, for groups, and for a
  // host that the kernel knows. Else the id waits, and next_outcome() has it by the deadline.
  bool reach(Instant now, const sockaddr& source, const sockaddr& destination, CmId* id, Instant deadline);
  void forget(CmId* id);
  void on_deadline(Instant now);
  std::optional<HostSearch::Outcome> next_outcome() { return search_.next_outcome(); }
  std::optional<Instant> next_deadline() const { return search_.next_deadline(); }

 private:
  struct Probe {
    explicit Probe(sa_family_t of_family) : family(of_family), socket(of_family) {}
    const sa_family_t family;
    ProbeSocket socket;
  };
  bool begin(Instant now, const HostSearch::Way& way, const sockaddr& source, const sockaddr& destination);
  void close_unused();

  HostSearch search_;
  std::map<HostSearch::Way, Probe> probes_;  // one a search
};

}  // namespace nicless::cm
