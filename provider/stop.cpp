// SPDX-License-Identifier: MIT
#include "provider/stop.h"

#include <poll.h>

#include <span>

#include "provider/qp.h"
#include "wire/io/clock.h"
#include "wire/io/raw_syscalls.h"
#include "wire/rc/queue_pair.h"

namespace nicless::provider {
namespace {

using Unanswered = wire::Requester::Unanswered;

// Another thread may be the one that receives the answer: how long to sleep before a look at what it has done.
constexpr queue::Duration kNap = std::chrono::milliseconds(1);

// Other transports have no answers to wait for.
std::optional<Unanswered> unanswered(Qp& qp) {
  const auto* const connected = dynamic_cast<const wire::RcQueuePair*>(qp.transport.get());
  if (connected == nullptr) return std::nullopt;
  queue::MutexLock lock(qp.seat.port->mutex);
  return connected->unanswered();
}

void nap(wire::UdpPort& port) {
  pollfd socket{-1, POLLIN, 0};
  {
    queue::MutexLock lock(port.mutex);
    socket.fd = port.fd();
  }
  wire::raw::poll(std::span(&socket, 1), kNap);
}

}  // namespace

void await_answers(Qp& qp) {
  wire::UdpPort& port = *qp.seat.port;
  Runtime& runtime = qp.context->runtime;
  runtime.receive_what_waits(port);
  const auto at_first = unanswered(qp);
  if (!at_first) return;
  const queue::Instant patience_ends = at_first->sent_at + kAnswerPatience;
  for (auto left = at_first; left && left->first_psn < at_first->end_psn; left = unanswered(qp)) {
    if (wire::now() >= patience_ends) return;
    nap(port);
    runtime.receive_what_waits(port);
  }
}

}  // namespace nicless::provider
