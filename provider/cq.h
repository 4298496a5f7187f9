// SPDX-License-Identifier: MIT
// Completion channels and completion queues behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <vector>

#include "provider/context.h"
#include "provider/event_gate.h"
#include "queue/completion_queue.h"
#include "queue/mutex.h"
#include "wire/io/udp_port.h"

namespace nicless::provider {

struct Channel {
  Channel(Context& the_context, int fd);
  ibv_comp_channel verbs{};
  const ContextHold context;
  queue::CompletionChannel events;
  std::atomic<std::uint32_t> users{0};  // CQs
};

struct Cq {
  Cq(Context& the_context, std::uint32_t capacity, void* cq_context, Channel* the_channel);
  ~Cq();

  // The ports of queue pairs that complete here: ibv_poll_cq on an empty CQ drives them. Counted, as several queue
  // pairs may share a port.
  void attach(const std::shared_ptr<wire::UdpPort>& port) EXCLUDES(driving);
  void detach(const std::shared_ptr<wire::UdpPort>& port) EXCLUDES(driving);

  struct Feed {
    std::shared_ptr<wire::UdpPort> port;
    std::uint32_t queue_pairs = 0;
  };

  ibv_cq verbs{};
  const ContextHold context;
  Channel* const channel;  // or null
  queue::CompletionQueue queue;
  EventGate completion_events;
  EventGate async_events;
  std::atomic<std::uint32_t> users{0};  // queue pairs, once for each of their two queues

  // Held by the one thread that drives this CQ's ports; before the ports' locks.
  queue::Mutex driving;
  std::vector<Feed> feeds GUARDED_BY(driving);
  std::atomic<std::uint32_t> empty_polls_since_armed;
};

inline Channel& channel_of(ibv_comp_channel* channel) {
  return *reinterpret_cast<Channel*>(channel);
}
inline Cq& cq_of(ibv_cq* cq) {
  return *reinterpret_cast<Cq*>(cq);
}

}  // namespace nicless::provider
