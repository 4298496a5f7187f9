// SPDX-License-Identifier: MIT
// A reliable connection queue pair: requester and responder behind the engine's five calls, and ibv_modify_qp.
// Port-bound. IBTA 9.7 (reliable service), 10.3 (states).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "queue/async_events.h"
#include "queue/completion_queue.h"
#include "queue/memory_region.h"
#include "queue/receive_queue.h"
#include "queue/result.h"
#include "queue/send_queue.h"
#include "wire/queue_pair.h"
#include "wire/rc/attributes.h"
#include "wire/rc/requester.h"
#include "wire/rc/responder.h"

namespace nicless::wire {

// What a queue pair is made of; all of it outlives the queue pair.
struct QpParts {
  queue::Qpn qpn{};
  queue::PdId pd{};
  queue::SendQueue* send_queue = nullptr;
  queue::ReceiveSource* receives = nullptr;     // its own receive queue or an SRQ
  queue::ReceiveQueue* own_receives = nullptr;  // the same queue where it is its own, else null
  queue::CompletionQueue* recv_cq = nullptr;
  queue::MrTable* regions = nullptr;
  queue::AsyncEvents* async_events = nullptr;
  void* handle = nullptr;  // the ibv_qp that events name
};

class RcQueuePair final : public QueuePair {
 public:
  explicit RcQueuePair(const QpParts& parts);

  QpState state() const { return attributes_.state; }
  const QpAttributes& attributes() const { return attributes_; }

  // ibv_modify_qp. EINVAL with the sentence; on success the caller calls Engine::on_post, as packets may be due.
  queue::Result<void> modify(queue::Instant now, const QpAttributes& wanted, std::uint32_t mask);

  // Sends may be posted in RTS, SQD and ERR (where they are flushed at once); receives in every state but RESET.
  queue::Result<void> check_post_send() const;
  queue::Result<void> check_post_recv() const;
  void on_recv_posted(queue::Instant now);  // in ERR: flushes it

  void on_packet(queue::Instant now, const PacketView& packet, const InDatagram& datagram) override;
  void on_post(queue::Instant now) override;
  void on_deadline(queue::Instant now) override;
  bool next_datagram(queue::Instant now, OutDatagram& out) override;
  std::optional<queue::Instant> next_deadline() const override;

  // Sentences about what went wrong since the last call, oldest first: the caller logs them (docs/ERRORS.md).
  std::vector<std::string> take_reasons();
};

}  // namespace nicless::wire
