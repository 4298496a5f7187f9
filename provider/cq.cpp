// SPDX-License-Identifier: MIT
#include "provider/cq.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "provider/objects.h"

namespace nicless::provider {
namespace {

// A CQ that was never armed is polled: its first empty poll may already tell the progress thread to keep off.
constexpr std::uint32_t kNeverArmed = 1u << 30;

}  // namespace

Channel::Channel(Context& the_context, int fd) : context(the_context), events(fd) {
  verbs.context = public_context(the_context);
  verbs.fd = fd;
}

Cq::Cq(Context& the_context, const CqRequest& request)
    : context(the_context),
      channel(request.channel != nullptr ? &channel_of(request.channel) : nullptr),
      queue(request.cqe, channel != nullptr ? &channel->events : nullptr, the_context.async_events, &verbs,
            request.options),
      empty_polls_since_armed(kNeverArmed) {
  verbs.context = public_context(the_context);
  verbs.channel = request.channel;
  verbs.cq_context = request.cq_context;
  verbs.cqe = static_cast<int>(request.cqe);
  pthread_mutex_init(&verbs.mutex, nullptr);
  pthread_cond_init(&verbs.cond, nullptr);
  if (channel != nullptr) channel->users.fetch_add(1);
}

Cq::~Cq() {
  if (channel != nullptr) channel->users.fetch_sub(1);
}

void Cq::attach(const std::shared_ptr<wire::UdpPort>& port) {
  queue::MutexLock lock(driving);
  const auto feed = std::find_if(feeds.begin(), feeds.end(), [&](const Feed& f) { return f.port == port; });
  if (feed == feeds.end()) {
    feeds.push_back({port, 1});
  } else {
    ++feed->queue_pairs;
  }
}

void Cq::detach(const std::shared_ptr<wire::UdpPort>& port) {
  queue::MutexLock lock(driving);
  const auto feed = std::find_if(feeds.begin(), feeds.end(), [&](const Feed& f) { return f.port == port; });
  if (feed != feeds.end() && --feed->queue_pairs == 0) feeds.erase(feed);
}

Result<ibv_comp_channel*> create_comp_channel(ibv_context* verbs) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  auto fd = queue::open_event_fd();
  if (!fd) return fd.error();
  return &std::make_unique<Channel>(context, *fd).release()->verbs;
}

Result<void> destroy_comp_channel(ibv_comp_channel* verbs) {
  Channel& channel = channel_of(verbs);
  if (auto alive = channel.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = channel.users.load(); users != 0) {
    return queue::error(EBUSY, "still in use, CQs with it: " + std::to_string(users));
  }
  if (channel.events.is_waited_on()) {
    channel.events.abandon();
    return {};
  }
  delete &channel;
  return {};
}

Result<std::unique_ptr<Cq>> make_cq(ibv_context* verbs, const CqRequest& request) {
  Context& context = context_of(verbs);
  if (auto alive = check_generation(context.generation); !alive) return alive.error();
  if (request.cqe < 1 || request.cqe > queue::kCqeMax) {
    return queue::error(EINVAL, "a completion queue holds 1 to " + std::to_string(queue::kCqeMax) + " entries, not " +
                                    std::to_string(static_cast<int>(request.cqe)));
  }
  if (request.comp_vector >= static_cast<std::uint32_t>(verbs->num_comp_vectors)) {
    return queue::error(
        EINVAL, "comp_vector must be below num_comp_vectors, which is " + std::to_string(verbs->num_comp_vectors));
  }
  return std::make_unique<Cq>(context, request);
}

Result<ibv_cq*> create_cq(ibv_context* verbs, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  auto cq = make_cq(
      verbs, {static_cast<std::uint32_t>(cqe), cq_context, channel, static_cast<std::uint32_t>(comp_vector), {}});
  if (!cq) return cq.error();
  return ibv_cq_ex_to_cq(&cq->release()->verbs);
}

queue::Error overrun_error(const Cq& cq) {
  return queue::error(EIO, "the CQ is overrun: a completion came when all its entries (" +
                               std::to_string(cq.queue.capacity()) +
                               ") were taken, and its queue pairs went to ERR; create it with room for all that may "
                               "complete before it is polled");
}

Result<void> resize_cq(ibv_cq* verbs, int cqe) {
  Cq& cq = cq_of(verbs);
  if (auto alive = cq.context.check_alive(); !alive) return alive;
  if (cq.queue.is_overrun()) return overrun_error(cq);
  if (cqe < 1) return queue::error(EINVAL, "a completion queue holds one entry at least");
  if (auto resized = cq.queue.resize(static_cast<std::uint32_t>(cqe)); !resized) return resized;
  verbs->cqe = cqe;
  return {};
}

// Events that nobody took are forgotten; those that were taken must be acknowledged first. Both are decided under the
// event list's lock, so no event can slip between.
Result<void> destroy_cq(ibv_cq* verbs) {
  Cq& cq = cq_of(verbs);
  if (auto alive = cq.context.check_alive(); !alive) return alive;
  if (const std::uint32_t users = cq.users.load(); users != 0) {
    return queue::error(EBUSY, "queue pairs or XRC SRQs still complete into this CQ");
  }
  cq.context->runtime.remove_moderated(cq.queue);
  if (cq.channel != nullptr) {
    cq.channel->events.erase_if([&](const queue::CompletionEvent& event) { return event.handle == verbs; });
  }
  cq.context->async_events.erase_if([&](const queue::AsyncEvent& event) { return event.handle == verbs; });
  cq.completion_events.wait_until_acknowledged();
  cq.async_events.wait_until_acknowledged();
  delete &cq;
  return {};
}

Result<ibv_cq*> wait_cq_event(ibv_comp_channel* verbs) {
  Channel& channel = channel_of(verbs);
  if (auto alive = channel.context.check_alive(); !alive) return alive.error();
  return channel.events.while_waiting([&]() -> Result<ibv_cq*> {
    for (;;) {
      const auto event = channel.events.take([](const queue::CompletionEvent& taken) {
        cq_of(static_cast<ibv_cq*>(taken.handle)).completion_events.on_delivered();
      });
      if (event) return static_cast<ibv_cq*>(event->handle);
      if (const int e = channel.events.await()) {
        return queue::error(e, e == EAGAIN ? "no event is waiting" : "interrupted by a signal");
      }
    }
  });
}

void ack_cq_events(ibv_cq* cq, unsigned count) {
  cq_of(cq).completion_events.acknowledge(count);
}

}  // namespace nicless::provider
