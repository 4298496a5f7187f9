// SPDX-License-Identifier: MIT
// A port: one UDP socket, one engine, one lock. Whoever holds the lock is the engine: a thread that posts, a thread
// that polls an empty completion queue, else the progress thread (docs/adr has the reasons).
//
// Functions marked REQUIRES(mutex) are the holder's; the others are for any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/types.h"
#include "wire/engine.h"
#include "wire/io/faults.h"
#include "wire/io/group_sockets.h"
#include "wire/io/receive_batch.h"
#include "wire/io/send_batch.h"
#include "wire/io/source_sockets.h"
#include "wire/io/trace.h"
#include "wire/io/udp_socket.h"
#include "wire/qp/flight_budget.h"

namespace nicless::wire {

// Work in one turn is bounded: at most one batch in and this many datagrams out.
inline constexpr std::size_t kDatagramsOutPerTurnMax = 512;

// What a turn leaves to do once the lock is released.
struct TurnReport {
  std::size_t received = 0;  // datagrams
  bool has_mads = false;     // the GSI's inbox is not empty
  bool has_unreachable = false;
  bool has_opened = false;         // sockets: take_opened()
  std::optional<Refusal> refusal;  // the kernel would not take a datagram
};

class UdpPort : public std::enable_shared_from_this<UdpPort> {
 public:
  // trace: null, or outlives the port. faults: what befalls its datagrams on their way out, or null.
  static queue::Result<std::shared_ptr<UdpPort>> open(const SocketConfig& config, Trace* trace,
                                                      std::unique_ptr<Faults> faults = nullptr,
                                                      Addressing addressing = Addressing::port_in_qpn());
  UdpPort(UdpSocket socket, const SocketConfig& config, Trace* trace, std::unique_ptr<Faults> faults,
          Addressing addressing);
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  queue::Mutex mutex;

  Engine& engine() REQUIRES(mutex) { return engine_; }
  // For the queue pairs of the engine, which must not outlive the port.
  FlightBudget& flight() { return flight_; }

  // One turn of the engine: receives a batch, meets deadlines, sends what is due.
  TurnReport turn(queue::Instant now) REQUIRES(mutex);
  // The same without receiving: after posts and state changes.
  TurnReport send(queue::Instant now) REQUIRES(mutex);
  // IP multicast groups that the engine's queue pairs are in (wire/multicast.h). join: the descriptors that whoever
  // waits for this port waits for as well; leave: they are closed, so nobody may wait for them any more.
  queue::Result<std::vector<int>> join(const Gid& group, std::span<const unsigned> interfaces) REQUIRES(mutex);
  std::vector<int> group_descriptors(const Gid& group) const REQUIRES(mutex) { return groups_.descriptors(group); }
  void leave(const Gid& group) REQUIRES(mutex) { groups_.leave(group); }

  // Destinations that ICMP says have no such port, since the last call.
  std::vector<Endpoint> take_unreachable() REQUIRES(mutex);
  // Descriptors of sockets to send from that were opened since the last call: whoever waits for this port waits for
  // their errors as well.
  std::vector<int> take_opened() REQUIRES(mutex);
  // Frees the UDP port number at once; what faults hold back leaves before. Turns do nothing from then on. Stop
  // watching it first (progress_thread.h).
  void close() REQUIRES(mutex);
  // What faults hold back leaves now: the port, or the process, is about to end.
  void flush_faults() REQUIRES(mutex);
  // What befell this port's datagrams; zeros without faults.
  LinkCounters fault_counters() const REQUIRES(mutex);

  // For queue pairs that show programs the IP header of what they receive.
  void tell_ip_options() REQUIRES(mutex) { socket_.tell_ip_options(); }

  bool is_open() const REQUIRES(mutex) { return socket_.is_open(); }
  std::uint16_t udp_port() const { return udp_port_; }
  int fd() const REQUIRES(mutex) { return socket_.fd(); }

  // The socket reported an error: empties its error queue.
  void on_socket_error() REQUIRES(mutex);

  // When the next turn is due, as of the last one: the engine's next deadline, when something that faults hold back
  // leaves, or at once if the limit ended its sending.
  std::optional<queue::Instant> next_deadline() const;

  // A program's thread polls this port: the progress thread keeps off it for a while. Forgotten when the program arms
  // a completion queue instead.
  void mark_polled(queue::Instant now) { polled_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  void forget_polled() { polled_at_.store(kLongAgo); }
  bool is_polled_since(queue::Instant since) const { return polled_at_.load() >= since.time_since_epoch().count(); }

  // Whether the progress thread waits for this socket (else a poller has it). Set by ProgressThread alone, like the
  // next three.
  bool is_watched() const { return is_watched_.load(); }
  void set_watched(bool is_watched) { is_watched_.store(is_watched); }

  // Its poller is one that goes away (poller_habit.h): it leaves the port to the progress thread as it goes.
  bool has_poller_that_goes() const { return has_poller_that_goes_.load(std::memory_order_relaxed); }
  void set_poller_goes(bool goes) { has_poller_that_goes_.store(goes, std::memory_order_relaxed); }
  // When it did, until it is back.
  bool is_left() const { return left_at_.load(std::memory_order_relaxed) != kLongAgo; }
  bool is_left_since(queue::Instant since) const { return left_at_.load() >= since.time_since_epoch().count(); }
  void set_left(queue::Instant now) { left_at_.store(now.time_since_epoch().count()); }
  void forget_left() { left_at_.store(kLongAgo); }
  // Whether the thread has received anything since.
  void set_received_while_left(bool has) { has_received_while_left_.store(has); }
  bool has_received_while_left() const { return has_received_while_left_.load(); }

 private:
  static constexpr std::int64_t kLongAgo = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  int receive(queue::Instant now, TurnReport& report) REQUIRES(mutex);
  int receive_from(const UdpSocket& socket, queue::Instant now, TurnReport& report) REQUIRES(mutex);
  void meet_deadline(queue::Instant now, bool may_have_more) REQUIRES(mutex);
  void send_due(queue::Instant now) REQUIRES(mutex);
  void fill(queue::Instant now) REQUIRES(mutex);
  SendBatch::Outlet outlet() REQUIRES(mutex) { return {socket_, sources_ ? &*sources_ : nullptr}; }
  void drain_errors() REQUIRES(mutex);
  bool send_held_back(queue::Instant now, queue::Instant due) REQUIRES(mutex);
  std::optional<queue::Instant> next_due(queue::Instant now) REQUIRES(mutex);
  void finish(queue::Instant now, TurnReport& report) REQUIRES(mutex);

  const std::uint16_t udp_port_;
  Trace* const trace_;
  UdpSocket socket_ GUARDED_BY(mutex);
  GroupSockets groups_ GUARDED_BY(mutex);
  std::optional<SourceSockets> sources_ GUARDED_BY(mutex);  // of strict RoCE v2
  FlightBudget flight_;
  Engine engine_ GUARDED_BY(mutex);
  SendBatch out_ GUARDED_BY(mutex);
  const std::unique_ptr<Faults> faults_;  // what it points at is guarded, too
  ReceiveBatch in_ GUARDED_BY(mutex);
  std::vector<Endpoint> unreachable_ GUARDED_BY(mutex);
  bool is_cut_ GUARDED_BY(mutex) = false;                // the limit ended sending
  std::size_t deadlines_put_off_ GUARDED_BY(mutex) = 0;  // turns in a row
  std::atomic<std::int64_t> next_deadline_{kNever};
  std::atomic<std::int64_t> polled_at_{kLongAgo};
  std::atomic<bool> is_watched_{false};
  std::atomic<bool> has_poller_that_goes_{false};
  std::atomic<std::int64_t> left_at_{kLongAgo};
  std::atomic<bool> has_received_while_left_{false};
};

}  // namespace nicless::wire
