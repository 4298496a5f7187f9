// SPDX-License-Identifier: MIT
// Completion channels and completion queues behind their handles. Every CQ is an extended one inside: the public
// structs of both kinds begin alike.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "provider/context.h"
#include "provider/event_gate.h"
#include "provider/pd_mr.h"
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

// What ibv_create_cq and ibv_create_cq_ex have in common.
struct CqRequest {
  std::uint32_t cqe = 0;
  void* cq_context = nullptr;
  ibv_comp_channel* channel = nullptr;
  std::uint32_t comp_vector = 0;
  queue::CqOptions options{};
};

struct Cq {
  Cq(Context& the_context, const CqRequest& request);
  ~Cq();

  // The ports of queue pairs that complete here: ibv_poll_cq on an empty CQ drives them. Counted, as several queue
  // pairs may share a port.
  void attach(const std::shared_ptr<wire::UdpPort>& port) EXCLUDES(driving);
  void detach(const std::shared_ptr<wire::UdpPort>& port) EXCLUDES(driving);

  struct Feed {
    std::shared_ptr<wire::UdpPort> port;
    std::uint32_t queue_pairs = 0;
  };

  ibv_cq_ex verbs{};
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
  std::atomic<bool> has_poller_that_goes{false};  // one of the ports, when it was driven last

  // Of the extended interface: one thread's batch, from ibv_start_poll to ibv_end_poll.
  queue::Mutex polling;
  bool is_single_threaded = false;  // IBV_CREATE_CQ_ATTR_SINGLE_THREADED: `polling` is not taken
  bool tells_wall_clock = false;    // completions are asked for their wall clock time
  queue::Completion current{};      // where the batch stands
  std::uint64_t to_wall_clock = 0;  // wall_clock_offset() when the batch began
  std::optional<PdChild> parent_domain;
};

// Of events that wait for more completions: microseconds, cq_mod_caps.
inline constexpr std::uint16_t kModerationCountMax = 0xffff;
inline constexpr std::uint16_t kModerationPeriodMax = 0xfff;

// EINVAL: cqe or comp_vector out of range.
Result<std::unique_ptr<Cq>> make_cq(ibv_context* context, const CqRequest& request);
// The oldest completion, at once or after one turn of the ports that feed the CQ: 1; 0: none; -1: overrun. As in
// ibv_poll_cq, who finds none for long yields the processor.
int poll_one(Cq& cq, queue::Completion& out);

// EIO: why a CQ that is_overrun() does no more.
queue::Error overrun_error(const Cq& cq);

inline Channel& channel_of(ibv_comp_channel* channel) {
  return *reinterpret_cast<Channel*>(channel);
}
inline Cq& cq_of(ibv_cq* cq) {
  return *reinterpret_cast<Cq*>(cq);
}

}  // namespace nicless::provider
