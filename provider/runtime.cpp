// SPDX-License-Identifier: MIT
#include "provider/runtime.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "provider/cm_nobody.h"
#include "provider/log.h"
#include "provider/port_watch.h"
#include "provider/process.h"
#include "provider/rocev2.h"
#include "provider/socket_buffer.h"
#include "wire/io/clock.h"
#include "wire/io/pcap_trace.h"

namespace nicless::provider {
namespace {

struct Slot {
  queue::Mutex mutex;
  std::atomic<Runtime*> runtime{nullptr};
};

// Static storage that nothing destroys, and that a forked child can make anew.
alignas(Slot) std::array<std::byte, sizeof(Slot)> storage;
Slot& slot() {
  static Slot& made = *new (storage.data()) Slot;
  return made;
}

// The parent's runtime, its thread and its locks are left as they are: dead here. Only the sockets are given up.
void on_child_fork() {
  new (&slot()) Slot;
  reset_log_after_fork();
  wire::close_inherited_sockets();
  wire::forget_interfaces();
}

// NICLESS_PCAP names a file to trace into. That it cannot be written does not keep the program from running.
std::unique_ptr<wire::Trace> open_trace() {
  const char* const path = std::getenv("NICLESS_PCAP");
  if (path == nullptr || *path == '\0') return nullptr;
  auto trace = wire::PcapTrace::open(
      path, [](const std::string& sentence) { log(NICLESS_LOG_ERROR, "NICLESS_PCAP: " + sentence); });
  if (trace) return std::move(*trace);
  log(NICLESS_LOG_ERROR, "NICLESS_PCAP: " + trace.error().why);
  return nullptr;
}

void log_refusal(const wire::Refusal& refusal) {
  if (refusal.to.port == 0) {  // wire/addressing.h
    return log(NICLESS_LOG_WARN,
               "packets to queue pair numbers below 0x100 are lost: no queue pair has such a number; give the peer's "
               "own qp_num (remote_qpn, dest_qp_num)");
  }
  log(NICLESS_LOG_WARN, "the kernel does not take datagrams of " + std::to_string(refusal.bytes) + " bytes to " +
                            to_string(refusal.to) + ": " + std::strerror(refusal.errno_value) +
                            "; they count as lost and are sent again");
}

PortCounters counters_of(wire::UdpPort& port) REQUIRES(port.mutex) {
  return {port.engine().counters(), port.engine().queue_pair_counters()};
}

}  // namespace

Result<Runtime*> Runtime::current() {
  if (Runtime* made = slot().runtime.load()) return made;
  queue::MutexLock lock(slot().mutex);
  if (Runtime* made = slot().runtime.load()) return made;
  watch_forks(on_child_fork);
  auto faults = ProcessFaults::from_environment();
  if (!faults) return faults.error();
  auto runtime = std::unique_ptr<Runtime>(new Runtime(std::move(*faults)));
  auto progress = wire::ProgressThread::start(*runtime);
  if (!progress) return progress.error();
  runtime->progress_ = *progress;
  if (runtime->faults_->has_any() || is_logged(NICLESS_LOG_INFO)) std::atexit(end);
  runtime->watch_links();
  slot().runtime.store(runtime.get());
  return runtime.release();
}

Runtime* Runtime::find() {
  return slot().runtime.load();
}

Runtime::Runtime(std::unique_ptr<ProcessFaults> faults)
    : faults_(std::move(faults)), srqn_(static_cast<std::uint32_t>(random_u64())) {
  if (is_rocev2()) cm_desk_.set_agent(cm_of_nobody(), this);
}

queue::Srqn Runtime::next_srqn() {
  constexpr std::uint32_t kMask = 0xffffff;
  std::uint32_t number = 0;
  while (number == 0) number = srqn_.fetch_add(1) & kMask;
  return queue::Srqn(number);
}

// Without it no port ever goes down: nothing that a program could not do without.
void Runtime::watch_links() {
  auto links = wire::LinkWatch::open();
  if (!links) return;
  links_ = std::move(*links);
  if (!progress_->watch_links(links_->fd())) links_.reset();
}

Result<Seat> Runtime::take_seat() {
  queue::MutexLock lock(registry_);
  for (const auto& port : data_ports_) {
    if (auto seat = sit_down(port)) return seat;
  }
  auto port = is_rocev2() ? rocev2_port() : open_data_port(wire::any_address());
  if (!port) return port.error();
  return sit_down(*port);
}

Result<std::shared_ptr<wire::UdpPort>> Runtime::open_data_port(const wire::SocketConfig& config) {
  auto port = open_locked(config);
  if (port) data_ports_.push_back(*port);
  return port;
}

// Opened once and then kept, as an adapter keeps its address. It has QP 1 from the start: with it come questions.
Result<std::shared_ptr<wire::UdpPort>> Runtime::rocev2_port() {
  if (!data_ports_.empty()) return data_ports_.front();
  auto port = open_data_port(rocev2_address());
  if (port) {
    cm_desk_.add(*port);
    return port;
  }
  log(NICLESS_LOG_ERROR, explain_taken_address(port.error()).why);
  return queue::error(port.error().errno_value, "the RoCE v2 port, UDP 4791, cannot be had");
}

Result<Seat> Runtime::sit_down(const std::shared_ptr<wire::UdpPort>& port) {
  queue::MutexLock lock(port->mutex);
  const auto qpn = port->engine().reserve_qpn();
  if (!qpn) return qpn.error();
  return Seat{port, *qpn};
}

void Runtime::leave_seat(const Seat& seat, const std::function<void()>& purge) {
  queue::MutexLock lock(registry_);
  {
    queue::MutexLock port_lock(seat.port->mutex);
    seat.port->engine().remove(seat.qpn);
  }
  reasons_.erase(seat.qpn);
  purge();
  close_if_unused(seat.port);
}

void Runtime::close_if_unused(const std::shared_ptr<wire::UdpPort>& port) {
  if (is_rocev2() || holds_.count(port.get()) != 0) return;
  {
    queue::MutexLock lock(port->mutex);
    if (port->engine().reserved_qpns() != 0) return;
  }
  std::erase(data_ports_, port);
  close_locked(port);
}

bool Runtime::hold_port(queue::Qpn qpn) {
  queue::MutexLock lock(registry_);
  const auto port = find_data_port(qpn);
  if (port == nullptr) return false;
  ++holds_[port.get()];
  return true;
}

void Runtime::release_port(queue::Qpn qpn) {
  queue::MutexLock lock(registry_);
  const auto port = find_data_port(qpn);
  if (port == nullptr || --holds_[port.get()] != 0) return;
  holds_.erase(port.get());
  close_if_unused(port);
}

std::shared_ptr<wire::UdpPort> Runtime::find_data_port(queue::Qpn qpn) {
  if (is_rocev2()) return nullptr;
  const std::uint16_t number = addressing().udp_port_of(qpn);
  const auto found = std::find_if(data_ports_.begin(), data_ports_.end(),
                                  [number](const auto& port) { return port->udp_port() == number; });
  return found == data_ports_.end() ? nullptr : *found;
}

void Runtime::set_reasons(queue::Qpn qpn, Reasons reasons) {
  queue::MutexLock lock(registry_);
  reasons_[qpn] = std::move(reasons);
}

void Runtime::log_reasons(queue::Qpn qpn) {
  if (!is_logged(NICLESS_LOG_WARN)) return;
  queue::MutexLock lock(registry_);
  const auto found = reasons_.find(qpn);
  if (found == reasons_.end()) return;
  for (const std::string& reason : found->second()) log(NICLESS_LOG_WARN, reason);
}

Result<std::shared_ptr<wire::UdpPort>> Runtime::open_port(const wire::SocketConfig& config) {
  queue::MutexLock lock(registry_);
  return is_rocev2() ? rocev2_port() : open_locked(config);
}

void Runtime::close_port(const std::shared_ptr<wire::UdpPort>& port) {
  queue::MutexLock lock(registry_);
  if (!is_rocev2()) close_locked(port);
}

Result<std::shared_ptr<wire::UdpPort>> Runtime::open_locked(const wire::SocketConfig& config) {
  if (ports_.empty() && trace_ == nullptr) trace_ = open_trace();
  wire::SocketConfig sized = config;
  sized.buffer_bytes = socket_buffer_bytes();
  auto port = wire::UdpPort::open(sized, trace_.get(), faults_->make_port_faults(), addressing());
  if (!port) return port.error();
  if (auto watched = progress_->watch(*port); !watched) return watched.error();
  ports_.push_back(*port);
  return port;
}

void Runtime::close_locked(const std::shared_ptr<wire::UdpPort>& port) {
  progress_->unwatch(*port);
  std::erase(ports_, port);
  queue::MutexLock lock(port->mutex);
  port->close();
  add(counters_of(*port), closed_counters_);
  closed_faults_ = closed_faults_ + port->fault_counters();
}

Result<void> Runtime::send_mad(wire::UdpPort& port, const wire::Mad& mad) {
  wire::TurnReport report;
  {
    queue::MutexLock lock(port.mutex);
    if (!port.is_open()) return queue::error(EBADF, "the endpoint is closed");
    port.engine().gsi().post(mad);
    report = port.send(wire::now());
  }
  Result<void> sent{};
  if (report.refusal && report.refusal->to == mad.to) {  // the caller's to tell
    sent = queue::error(report.refusal->errno_value, "the kernel does not take the datagram");
    report.refusal.reset();
  }
  settle(port, report);
  return sent;
}

void Runtime::settle(wire::UdpPort& port, const wire::TurnReport& report) {
  collect(port, report);
  // A poller that has the port meets its deadlines; should it go, the thread looks within two milliseconds.
  const auto deadline = port.is_watched() ? port.next_deadline() : std::nullopt;
  if (deadline) progress_->wake_by(*deadline);
  if (report.has_mads || report.has_unreachable) progress_->wake();
}

void Runtime::receive_what_waits(wire::UdpPort& port) {
  constexpr int kTurnsMax = 64;  // a peer may send faster than this thread receives
  std::size_t received = 1;
  for (int turns = 0; turns < kTurnsMax && received != 0; ++turns) {
    wire::TurnReport report;
    {
      queue::MutexLock lock(port.mutex);
      report = port.turn(wire::now());
    }
    settle(port, report);
    received = report.received;
  }
}

void Runtime::pass_through_ports() {
  std::vector<std::shared_ptr<wire::UdpPort>> ports;
  {
    queue::MutexLock lock(registry_);
    ports = ports_;
  }
  for (const auto& port : ports) queue::MutexLock lock(port->mutex);
}

void Runtime::on_turn(wire::UdpPort& port, const wire::TurnReport& report) {
  collect(port, report);
}

std::optional<queue::Instant> Runtime::on_wake(queue::Instant now) {
  return queue::earliest(cm_desk_.serve(now), raise_due_events(now));
}

void Runtime::add_moderated(queue::CompletionQueue& cq) {
  queue::MutexLock lock(moderated_mutex_);
  if (std::find(moderated_.begin(), moderated_.end(), &cq) == moderated_.end()) moderated_.push_back(&cq);
}

void Runtime::remove_moderated(queue::CompletionQueue& cq) {
  queue::MutexLock lock(moderated_mutex_);
  std::erase(moderated_, &cq);
}

std::optional<queue::Instant> Runtime::raise_due_events(queue::Instant now) {
  std::optional<queue::Instant> next;
  queue::MutexLock lock(moderated_mutex_);
  for (queue::CompletionQueue* const cq : moderated_) next = queue::earliest(next, cq->raise_if_due(now));
  return next;
}

void Runtime::on_link_change() {
  links_->drain();
  look_at_ports();
}

void Runtime::on_unwatchable(int errno_value) {
  log(NICLESS_LOG_WARN, std::string("the system does not let nicless wait for one more socket (epoll_ctl: ") +
                            std::strerror(errno_value) +
                            "); it looks at it every millisecond instead, which costs time and processor: see "
                            "/proc/sys/fs/epoll/max_user_watches");
}

void Runtime::collect(wire::UdpPort& port, const wire::TurnReport& report) {
  if (report.refusal) log_refusal(*report.refusal);
  if (report.has_opened) watch_opened(port);
  if (report.has_mads || report.has_unreachable) cm_desk_.collect(port);
}

// Where a descriptor cannot be watched, an ICMP error is found with the next datagram that leaves by it.
void Runtime::watch_opened(wire::UdpPort& port) {
  std::vector<int> opened;
  {
    queue::MutexLock lock(port.mutex);
    opened = port.take_opened();
  }
  for (const int fd : opened) static_cast<void>(progress_->watch_also(port.shared_from_this(), fd));
}

// At exit: what faults hold back leaves, as it would leave a network whose sender is gone, and the user is told what
// was done. A forked child that has no runtime has nothing to say.
void Runtime::end() {
  if (Runtime* runtime = find()) runtime->end_ports();
}

void Runtime::end_ports() {
  // The exiting thread may have been interrupted in the middle of anything.
  if (!registry_.try_lock()) return;
  wire::LinkCounters link = closed_faults_;
  PortCounters counters = closed_counters_;
  for (const auto& port : ports_) {
    if (!port->mutex.try_lock()) continue;
    port->flush_faults();
    link = link + port->fault_counters();
    add(counters_of(*port), counters);
    port->mutex.unlock();
  }
  registry_.unlock();
  if (faults_->has_any()) log(NICLESS_LOG_INFO, faults_->summary(link));
  log(NICLESS_LOG_INFO, summary(counters));
}

PortCounters Runtime::counters() {
  std::vector<std::shared_ptr<wire::UdpPort>> ports;
  PortCounters sum;
  {
    queue::MutexLock lock(registry_);
    ports = ports_;
    sum = closed_counters_;
  }
  for (const auto& port : ports) {
    queue::MutexLock lock(port->mutex);
    add(counters_of(*port), sum);
  }
  return sum;
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  return value;
}

}  // namespace nicless::provider
