// SPDX-License-Identifier: MIT
#include "wire/io/udp_port.h"

#include <algorithm>
#include <utility>

#include "wire/io/clock.h"
#include "wire/io/error_queue.h"

namespace nicless::wire {

namespace {

constexpr std::size_t kDeadlinesPutOffMax = 16;

}  // namespace

queue::Result<std::shared_ptr<UdpPort>> UdpPort::open(const SocketConfig& config, Trace* trace,
                                                      std::unique_ptr<Faults> faults, Addressing addressing) {
  auto socket = UdpSocket::open(config);
  if (!socket) return socket.error();
  return std::make_shared<UdpPort>(std::move(*socket), config, trace, std::move(faults), addressing);
}

UdpPort::UdpPort(UdpSocket socket, const SocketConfig& config, Trace* trace, std::unique_ptr<Faults> faults,
                 Addressing addressing)
    : udp_port_(socket.port()),
      trace_(trace),
      socket_(std::move(socket)),
      flight_(FlightBudget::bytes_for(socket_.receive_buffer_bytes())),
      engine_(udp_port_, addressing),
      faults_(std::move(faults)) {
  if (addressing.is_strict()) sources_.emplace(config);
}

TurnReport UdpPort::turn(queue::Instant now) {
  TurnReport report;
  if (!socket_.is_open()) return report;
  const int messages = receive(now, report);
  const auto deadline = next_deadline();
  const bool is_due = deadline && *deadline <= now;
  if (messages == 0 && unreachable_.empty() && !is_due) return report;  // an idle turn costs one system call
  if (is_due) meet_deadline(now, messages == static_cast<int>(ReceiveBatch::kMessagesMax));
  send_due(now);
  finish(now, report);
  return report;
}

TurnReport UdpPort::send(queue::Instant now) {
  TurnReport report;
  if (!socket_.is_open()) return report;
  send_due(now);
  finish(now, report);
  return report;
}

std::vector<Endpoint> UdpPort::take_unreachable() {
  return std::exchange(unreachable_, {});
}

std::vector<int> UdpPort::take_opened() {
  return sources_ ? sources_->take_opened() : std::vector<int>();
}

queue::Result<std::vector<int>> UdpPort::join(const Gid& group, std::span<const unsigned> interfaces) {
  return groups_.join(group, interfaces, socket_);
}

void UdpPort::close() {
  flush_faults();
  groups_.close();
  if (sources_) sources_->close();
  socket_.close();
  next_deadline_.store(kNever);
}

void UdpPort::flush_faults() {
  if (faults_ == nullptr || !socket_.is_open()) return;
  const queue::Instant at = now();
  while (send_held_back(at, queue::Instant::max())) {
  }
}

LinkCounters UdpPort::fault_counters() const {
  return faults_ == nullptr ? LinkCounters{} : faults_->counters();
}

std::optional<queue::Instant> UdpPort::next_deadline() const {
  const std::int64_t deadline = next_deadline_.load();
  if (deadline == kNever) return std::nullopt;
  return queue::Instant(queue::Duration(deadline));
}

void UdpPort::on_socket_error() {
  if (socket_.is_open()) drain_errors();
}

void UdpPort::drain_errors() {
  drain_error_queue(socket_, unreachable_);
  if (sources_) sources_->drain_errors(unreachable_);
}

// Returns how many messages came, or a negative errno.
int UdpPort::receive(queue::Instant now, TurnReport& report) {
  int messages = receive_from(socket_, now, report);
  if (messages < 0) drain_error_queue(socket_, unreachable_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    messages = std::max(messages, receive_from(groups_.socket(i), now, report));
  }
  return messages;
}

int UdpPort::receive_from(const UdpSocket& socket, queue::Instant now, TurnReport& report) {
  const int messages = in_.receive(socket);
  InDatagram datagram;
  while (in_.next(datagram)) {
    ++report.received;
    if (trace_ != nullptr) trace_->on_received(now, datagram);
    engine_.on_datagram(now, datagram);
  }
  return messages;
}

// What still waits in the socket may be the answer that a timer waits for: a turn that could not read everything puts
// deadlines off, though not for ever, as anybody can flood a socket.
void UdpPort::meet_deadline(queue::Instant now, bool may_have_more) {
  if (may_have_more && deadlines_put_off_ < kDeadlinesPutOffMax) {
    ++deadlines_put_off_;
    return;
  }
  deadlines_put_off_ = 0;
  engine_.on_deadline(now);
}

// Spans of a datagram point into registered memory and are good while the lock is held: each batch leaves before the
// next is made, and all before the lock is released.
void UdpPort::send_due(queue::Instant now) {
  for (std::size_t sent = 0; sent < kDatagramsOutPerTurnMax; sent += SendBatch::kDatagramsMax) {
    fill(now);
    const bool is_last = !out_.is_full();
    if (!out_.empty()) {
      if (faults_ == nullptr) {
        out_.send(outlet(), now, trace_);
      } else {
        faults_->take(now, out_);
      }
      engine_.on_sent();
    }
    is_cut_ = !is_last;
    if (is_last) break;
  }
  if (faults_ == nullptr) return;
  for (std::size_t sent = 0; sent < kDatagramsOutPerTurnMax && send_held_back(now, now);) {
    sent += SendBatch::kDatagramsMax;  // what is left is due at once: next_due()
  }
}

// One batch of what faults let out by `due`; false if there is nothing.
bool UdpPort::send_held_back(queue::Instant now, queue::Instant due) {
  faults_->fill(due, out_);
  if (out_.empty()) return false;
  out_.send_sealed(outlet(), now, trace_);
  return true;
}

void UdpPort::fill(queue::Instant now) {
  while (!out_.is_full() && engine_.next_datagram(now, out_.slot())) {
    if (sources_) out_.slot().from.port = sources_->choose(out_.slot().from.port);
    out_.keep();
  }
}

void UdpPort::finish(queue::Instant now, TurnReport& report) {
  if (out_.take_error_hint()) drain_errors();
  report.has_opened = sources_ && sources_->has_opened();
  if (trace_ != nullptr) trace_->on_turn_end();
  const auto deadline = next_due(now);
  next_deadline_.store(deadline ? deadline->time_since_epoch().count() : kNever);
  report.has_mads = engine_.gsi().has_arrivals();
  report.has_unreachable = !unreachable_.empty();
  report.refusal = out_.take_refusal();
}

std::optional<queue::Instant> UdpPort::next_due(queue::Instant now) {
  if (is_cut_) return now;
  const auto deadline = engine_.next_deadline();
  return faults_ == nullptr ? deadline : queue::earliest(deadline, faults_->next_departure());
}

}  // namespace nicless::wire
