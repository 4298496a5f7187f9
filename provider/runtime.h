// SPDX-License-Identifier: MIT
// The engine of this process: its ports, its progress thread, and the desk of the connection manager. One per process,
// made at the first verb that needs it and never destroyed. Thread-safe.
//
// Locks, in this order: the registry here, then a port's, then SRQ | RQ, CQ, channel. Nothing is held while waiting.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "provider/cm_desk.h"
#include "provider/faults.h"
#include "provider/port_counters.h"
#include "provider/xrc_group.h"
#include "queue/completion_queue.h"
#include "queue/mutex.h"
#include "queue/result.h"
#include "wire/io/link_watch.h"
#include "wire/io/progress_thread.h"
#include "wire/io/trace.h"
#include "wire/io/udp_port.h"

namespace nicless::provider {

using queue::Result;

// Says why a queue pair's completions are in error: sentences not asked for before.
using Reasons = std::function<std::vector<std::string>()>;

// A queue pair's place: a port and a number on it.
struct Seat {
  std::shared_ptr<wire::UdpPort> port;
  queue::Qpn qpn{};
};

class Runtime final : public wire::ProgressOwner {
 public:
  // Makes it at the first call. In a forked child: a new one. EINVAL where the environment asks for faults that are
  // none.
  static Result<Runtime*> current();
  // The one there is, or null.
  static Runtime* find();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // A number on a port that has one free; opens another port when none has. EMFILE and the like when that fails.
  Result<Seat> take_seat() EXCLUDES(registry_);
  // Takes the queue pair out of its engine, then runs `purge` before anybody else can get the number. The port is
  // closed with its last queue pair, unless it is held.
  void leave_seat(const Seat& seat, const std::function<void()>& purge) EXCLUDES(registry_);
  // The port of this number stays open until it was released as often. False: none of this process has it, or it stays
  // open anyway (strict RoCE v2).
  bool hold_port(queue::Qpn qpn) EXCLUDES(registry_);
  void release_port(queue::Qpn qpn) EXCLUDES(registry_);
  // Whom log_reasons() asks, until the seat is left; it takes the port's lock.
  void set_reasons(queue::Qpn qpn, Reasons reasons) EXCLUDES(registry_);
  // Logs why this queue pair failed, if it has anything to say.
  void log_reasons(queue::Qpn qpn) EXCLUDES(registry_);

  // Ports of the connection manager's. In strict RoCE v2 mode always the process's one port, which stays.
  Result<std::shared_ptr<wire::UdpPort>> open_port(const wire::SocketConfig& config) EXCLUDES(registry_);
  void close_port(const std::shared_ptr<wire::UdpPort>& port) EXCLUDES(registry_);

  // One management datagram, from QP 1 of this port. EBADF: it is closed; else what sendmsg(2) says against it.
  Result<void> send_mad(wire::UdpPort& port, const wire::Mad& mad);

  // After a turn on a program's thread, with no lock held: passes on what the turn could not finish.
  void settle(wire::UdpPort& port, const wire::TurnReport& report);
  // CQs whose events may wait (ibv_modify_cq): the progress thread raises them when they are due.
  void add_moderated(queue::CompletionQueue& cq) EXCLUDES(moderated_mutex_);
  void remove_moderated(queue::CompletionQueue& cq) EXCLUDES(moderated_mutex_);
  // An adapter has dealt with everything that arrived before a queue pair is told to stop: acknowledgements among it,
  // of requests that would be flushed. Here it may still wait in the socket, as after a message that tells of a
  // disconnect.
  void receive_what_waits(wire::UdpPort& port);
  // When this returns, every turn that began before the call has ended: nobody uses memory or objects that were
  // unreachable at the call.
  void pass_through_ports() EXCLUDES(registry_);

  // Of all ports that are or were open.
  PortCounters counters() EXCLUDES(registry_);

  wire::ProgressThread& progress() { return *progress_; }
  CmDesk& cm_desk() { return cm_desk_; }
  ProcessFaults& faults() { return *faults_; }
  XrcDomains& xrc_domains() { return xrc_domains_; }
  // Numbers of shared receive queues: 24 bits, never 0, the first one by chance, so that no two processes take each
  // other's.
  queue::Srqn next_srqn();

  void on_turn(wire::UdpPort& port, const wire::TurnReport& report) override;
  std::optional<queue::Instant> on_wake(queue::Instant now) override;
  void on_link_change() override;
  void on_unwatchable(int errno_value) override;

 private:
  explicit Runtime(std::unique_ptr<ProcessFaults> faults);
  static void end();
  Result<Seat> sit_down(const std::shared_ptr<wire::UdpPort>& port) REQUIRES(registry_);
  Result<std::shared_ptr<wire::UdpPort>> open_data_port(const wire::SocketConfig& config) REQUIRES(registry_);
  Result<std::shared_ptr<wire::UdpPort>> rocev2_port() REQUIRES(registry_);
  Result<std::shared_ptr<wire::UdpPort>> open_locked(const wire::SocketConfig& config) REQUIRES(registry_);
  std::shared_ptr<wire::UdpPort> find_data_port(queue::Qpn qpn) REQUIRES(registry_);
  void close_if_unused(const std::shared_ptr<wire::UdpPort>& port) REQUIRES(registry_);
  void close_locked(const std::shared_ptr<wire::UdpPort>& port) REQUIRES(registry_);
  void collect(wire::UdpPort& port, const wire::TurnReport& report);
  void watch_links();
  void watch_opened(wire::UdpPort& port);
  std::optional<queue::Instant> raise_due_events(queue::Instant now) EXCLUDES(moderated_mutex_);

  void end_ports() EXCLUDES(registry_);

  const std::unique_ptr<ProcessFaults> faults_;
  wire::ProgressThread* progress_ = nullptr;
  queue::Mutex moderated_mutex_;
  std::vector<queue::CompletionQueue*> moderated_ GUARDED_BY(moderated_mutex_);
  std::unique_ptr<wire::LinkWatch> links_;  // null where there can be none
  CmDesk cm_desk_;
  XrcDomains xrc_domains_;
  std::atomic<std::uint32_t> srqn_;
  queue::Mutex registry_;
  std::vector<std::shared_ptr<wire::UdpPort>> ports_ GUARDED_BY(registry_);       // all
  std::vector<std::shared_ptr<wire::UdpPort>> data_ports_ GUARDED_BY(registry_);  // those with queue pairs
  std::unordered_map<const wire::UdpPort*, std::size_t> holds_ GUARDED_BY(registry_);
  wire::LinkCounters closed_faults_ GUARDED_BY(registry_);  // of ports that are closed
  PortCounters closed_counters_ GUARDED_BY(registry_);      // of those, too
  std::unordered_map<queue::Qpn, Reasons> reasons_ GUARDED_BY(registry_);
  std::unique_ptr<wire::Trace> trace_;  // of all ports; null where none is wanted. Set under registry_, never changed
};

// 64 bits from the kernel's generator: seeds and keys.
std::uint64_t random_u64();

}  // namespace nicless::provider
