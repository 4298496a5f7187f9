// SPDX-License-Identifier: MIT
// Where the engine and the connection manager meet: management datagrams and ICMP answers wait here until the progress
// thread hands them to the agent of private.h, with no lock held. Thread-safe; serve() is the progress thread's.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <variant>

#include "provider/private.h"
#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/types.h"
#include "wire/io/udp_port.h"

// What private.h calls a nicless_gsi.
struct nicless_gsi {
  std::shared_ptr<nicless::wire::UdpPort> port;
};

namespace nicless::provider {

class CmDesk {
 public:
  void set_agent(const nicless_cm_agent& calls, void* agent) EXCLUDES(mutex_);

  nicless_gsi* add(std::shared_ptr<wire::UdpPort> port) EXCLUDES(mutex_);
  // Its port, once; null if it is not there (any more). What waits for the agent about it is dropped. Waits until a
  // call about it that has begun has ended, but for the thread that makes these calls: it would wait for itself.
  std::shared_ptr<wire::UdpPort> remove(nicless_gsi* gsi, bool is_progress_thread) EXCLUDES(mutex_);

  // Takes what arrived at this port into the inbox; of a port that has no GSI here, no management datagrams.
  void collect(wire::UdpPort& port) EXCLUDES(mutex_);

  // Hands over what waits, meets the agent's deadline; returns its next one.
  std::optional<queue::Instant> serve(queue::Instant now) EXCLUDES(mutex_);

 private:
  struct Unreachable {
    wire::Endpoint remote;
  };
  struct Item {
    std::shared_ptr<nicless_gsi> gsi;  // null: a port of queue pairs
    std::variant<wire::Mad, Unreachable> what;
  };
  struct Agent {
    nicless_cm_agent calls{};
    void* self = nullptr;
  };

  void note_unreachable(const std::shared_ptr<nicless_gsi>& gsi, const std::vector<wire::Endpoint>& remotes)
      REQUIRES(mutex_);
  std::optional<Item> next() EXCLUDES(mutex_);
  void on_delivered() EXCLUDES(mutex_);
  void wait_for_delivery(const nicless_gsi* gsi) NO_THREAD_SAFETY_ANALYSIS;
  static void deliver(const Agent& agent, std::uint64_t now, const Item& item);

  queue::Mutex mutex_;
  std::optional<Agent> agent_ GUARDED_BY(mutex_);
  std::unordered_map<const wire::UdpPort*, std::shared_ptr<nicless_gsi>> by_port_ GUARDED_BY(mutex_);
  std::deque<Item> inbox_ GUARDED_BY(mutex_);
  const nicless_gsi* delivering_ GUARDED_BY(mutex_) = nullptr;  // the agent is called about this one now
  std::condition_variable delivered_;
};

}  // namespace nicless::provider
