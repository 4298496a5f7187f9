// SPDX-License-Identifier: MIT
// The connection manager of the process: one lock, the connections, the ports, the devices, and what the engine's
// progress thread calls when a management datagram, an ICMP message or a deadline comes.
//
// The lock is outside every lock of the engine: under it any function of verbs.h and private.h may be called except
// those that wait (nicless_gsi_close, ibv_destroy_cq, ibv_destroy_qp, ibv_get_cq_event). A Turn holds it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cm/devices.h"
#include "cm/hosts.h"
#include "cm/ports.h"
#include "cm/resolutions.h"
#include "cm/switchboard.h"
#include "queue/mutex.h"
#include "queue/rng.h"

struct nicless_gsi;
struct nicless_endpoint;

namespace nicless::cm {

struct Agent {
  // The one of this process; a forked child gets its own at the first call and leaves the parent's alone. ENODEV or
  // what the engine says when it cannot start.
  static Result<Agent*> instance();
  // The same, if it has been made; else null.
  static Agent* running();

  queue::Mutex mutex;
  Devices devices GUARDED_BY(mutex);
  Ports ports GUARDED_BY(mutex);
  Switchboard connections GUARDED_BY(mutex);
  Resolutions resolutions GUARDED_BY(mutex);
  Hosts hosts GUARDED_BY(mutex);
  queue::Rng rng GUARDED_BY(mutex);
  const std::uint32_t tid_high;

  explicit Agent(std::uint64_t seed);

  // A new name for this end of a connection or of a resolution.
  Identity make_identity(std::uint64_t ca_guid) REQUIRES(mutex);
  // Sends what the connection has to send, tells its owner what happened, forgets it when all is over.
  void pump(ConnectionEntry& entry, Instant now) REQUIRES(mutex);
  // The id is being destroyed, and its socket may go: the connection goes on alone until the peer has been told.
  void orphan(ConnectionEntry& entry, Instant now) REQUIRES(mutex);
  // What the connections and the resolutions have to send and to say.
  void flush(Instant now) REQUIRES(mutex);

  // Closes the sockets that nobody holds, and waits for those that other threads are closing; without the lock, which
  // it gives up and takes again. False: there were none.
  bool close_unused() REQUIRES(mutex);

  std::optional<Instant> next_deadline() const REQUIRES(mutex);
  // Who listens for that service at that address of this machine.
  CmId* find_listener(wire::ServiceId service, const wire::Gid& local) const REQUIRES(mutex);

  void on_mad(Instant now, nicless_gsi* at, const wire::Endpoint& remote, const wire::Gid& local,
              const wire::CmMessage& message) REQUIRES(mutex);
  void on_unreachable(Instant now, const wire::Endpoint& remote) REQUIRES(mutex);
  void on_deadline(Instant now) REQUIRES(mutex);

  // The process exits: on_deadline says farewell to every peer, at once. See agent.cpp.
  std::atomic<bool> is_leaving = false;

 private:
  friend class Turn;
  void close_unlocked(const std::vector<nicless_gsi*>& unused) NO_THREAD_SAFETY_ANALYSIS;

  int closing_ GUARDED_BY(mutex) = 0;  // threads that are closing sockets
  std::condition_variable_any closed_;
};

Instant now();

// The way of an id's requests: from the socket it is bound to, or from the process's own. The id has a route.
Result<MadPath> path_to_service(const CmId& id);

// For ConnectionEntry::data_port; null: no port of this process is to be held open for a queue pair of that number.
std::shared_ptr<void> hold_data_port(queue::Qpn qpn);

// Sends one message along the path. What could not be sent just now is as good as lost on the way: who waits for it
// asks again. An errno if this machine will not send it next time either, else 0.
int send(const MadPath& path, const wire::CmMessage& message);

// Says no to a REQ that makes no id.
void refuse(const MadPath& path, const wire::CmMessage& request, wire::RejReason why);

// One turn of the connection manager: its lock, and after it what must not happen under it.
class SCOPED_CAPABILITY Turn {
 public:
  explicit Turn(Agent& agent) ACQUIRE(agent.mutex);
  ~Turn() RELEASE();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Agent& agent_;
  std::optional<Instant> deadline_before_;
};

// A REQ has come for this listener: makes the id of the connection and queues CONNECT_REQUEST. If the backlog is full
// the REQ is forgotten; the peer asks again.
void request_arrived(Agent& agent, CmId& listener, MadPath path, const wire::CmMessage& message);

// What became of a connection, as an event for the id.
void report(CmId& id, const ConnectionEvent& event);

}  // namespace nicless::cm
