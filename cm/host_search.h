// SPDX-License-Identifier: MIT
// Which hosts are being looked for on their links, for which ids, and until when: rdma_resolve_addr(3) waits, as in the
// kernel, until ARP or neighbour discovery has an answer, its timeout_ms at most. Virtual time, no I/O: whoever has the
// sockets looks when next_look() says so, and tells what was seen. Called with the agent's lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "cm/timeouts.h"
#include "queue/deadlines.h"
#include "wire/packet/endpoint.h"

namespace nicless::cm {

struct CmId;

class HostSearch {
 public:
  static constexpr Duration kFirstLook = std::chrono::microseconds(100);  // then twice as long each time
  static constexpr Duration kLongestLook = std::chrono::milliseconds(20);
  static constexpr Duration kKnownFor = std::chrono::seconds(30);  // about as long as Linux believes a neighbour
  static constexpr std::size_t kKnownMax = 4096;

  struct Way {
    wire::Gid from;
    wire::Gid to;
    friend auto operator<=>(const Way&, const Way&) = default;
  };
  enum class Sight : std::uint8_t {
    Pending,  // nobody knows yet
    Found,
    Lost,  // the kernel has given up: it has to be asked anew
  };
  struct Outcome {
    CmId* id;
    bool is_found;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  // Found there not long ago.
  bool is_known(Instant now, const Way& way) const;
  // The id waits; the first one for that way begins the search.
  void wait_for(Instant now, const Way& way, CmId* id, Instant deadline);
  void forget(CmId* id);
  bool is_searching(const Way& way) const { return searches_.contains(way); }

  // A way to look at now; it stays the next one until on_sight().
  std::optional<Way> next_look(Instant now) const { return looks_.due(now); }
  // Also without a search, when the first look has settled it. A host that comes in sight late has to stay there for
  // one more look: when the kernel gives up, its error comes a moment after the datagram that it is about has gone.
  void on_sight(Instant now, const Way& way, Sight sight);
  // Ids whose time is over have not found their host.
  void on_deadline(Instant now);
  std::optional<Outcome> next_outcome();
  std::optional<Instant> next_deadline() const;

 private:
  struct Search {
    Duration interval = kFirstLook;
    bool is_in_doubt = false;
    std::vector<CmId*> waiting;
  };
  void end(const Way& way);

  std::map<Way, Search> searches_;
  queue::Deadlines<Way> looks_;
  std::map<CmId*, Way> ways_;
  queue::Deadlines<CmId*> deadlines_;
  std::map<Way, Instant> known_until_;
  std::deque<Outcome> outcomes_;
};

}  // namespace nicless::cm
