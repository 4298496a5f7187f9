// SPDX-License-Identifier: MIT
#include "provider/cm_desk.h"

#include <algorithm>

namespace nicless::provider {
namespace {

// One wake-up hands over so many at most before deadlines have their turn.
constexpr int kItemsPerServeMax = 1024;

std::uint64_t nanoseconds(queue::Instant instant) {
  return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}

nicless_endpoint plain(const wire::Endpoint& endpoint) {
  nicless_endpoint plain{};
  std::transform(endpoint.address.bytes.begin(), endpoint.address.bytes.end(), plain.address,
                 [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  plain.port = endpoint.port;
  return plain;
}

}  // namespace

void CmDesk::set_agent(const nicless_cm_agent& calls, void* agent) {
  queue::MutexLock lock(mutex_);
  agent_ = Agent{calls, agent};
}

nicless_gsi* CmDesk::add(std::shared_ptr<wire::UdpPort> port) {
  queue::MutexLock lock(mutex_);
  auto gsi = std::make_shared<nicless_gsi>();
  gsi->port = std::move(port);
  const wire::UdpPort* const key = gsi->port.get();
  return by_port_.emplace(key, std::move(gsi)).first->second.get();
}

std::shared_ptr<wire::UdpPort> CmDesk::remove(nicless_gsi* gsi, bool is_progress_thread) {
  std::shared_ptr<nicless_gsi> removed;
  {
    queue::MutexLock lock(mutex_);
    const auto found =
        std::find_if(by_port_.begin(), by_port_.end(), [&](const auto& e) { return e.second.get() == gsi; });
    if (found == by_port_.end()) return nullptr;
    removed = found->second;
    by_port_.erase(found);
    std::erase_if(inbox_, [&](const Item& item) { return item.gsi == removed; });
  }
  if (!is_progress_thread) wait_for_delivery(gsi);
  return removed->port;
}

void CmDesk::wait_for_delivery(const nicless_gsi* gsi) {
  std::unique_lock lock(mutex_.native());
  delivered_.wait(lock, [&]() NO_THREAD_SAFETY_ANALYSIS { return delivering_ != gsi; });
}

void CmDesk::collect(wire::UdpPort& port) {
  std::vector<wire::Mad> mads;
  std::vector<wire::Endpoint> unreachable;
  {
    queue::MutexLock lock(port.mutex);
    while (auto mad = port.engine().gsi().take()) mads.push_back(*mad);
    unreachable = port.take_unreachable();
  }
  queue::MutexLock lock(mutex_);
  const auto found = by_port_.find(&port);
  if (found == by_port_.end()) return note_unreachable(nullptr, unreachable);
  for (const wire::Mad& mad : mads) inbox_.push_back({found->second, mad});
  note_unreachable(found->second, unreachable);
}

// A stream to a closed port of this machine brings an ICMP message for each datagram: they say it once.
void CmDesk::note_unreachable(const std::shared_ptr<nicless_gsi>& gsi, const std::vector<wire::Endpoint>& remotes) {
  if (!agent_) return;
  for (auto remote = remotes.begin(); remote != remotes.end(); ++remote) {
    if (std::find(remotes.begin(), remote, *remote) == remote) inbox_.push_back({gsi, Unreachable{*remote}});
  }
}

std::optional<queue::Instant> CmDesk::serve(queue::Instant now) {
  std::optional<Agent> agent;
  {
    queue::MutexLock lock(mutex_);
    agent = agent_;
  }
  if (!agent) return std::nullopt;
  for (int i = 0; i < kItemsPerServeMax; ++i) {
    const auto item = next();
    if (!item) break;
    deliver(*agent, nanoseconds(now), *item);
    on_delivered();
  }
  std::uint64_t deadline = agent->calls.next_deadline(agent->self);
  if (deadline <= nanoseconds(now)) {
    agent->calls.on_deadline(agent->self, nanoseconds(now));
    deadline = agent->calls.next_deadline(agent->self);
  }
  {
    queue::MutexLock lock(mutex_);
    if (!inbox_.empty()) return now;
  }
  if (deadline == NICLESS_NEVER) return std::nullopt;
  return queue::Instant(queue::Duration(deadline));
}

std::optional<CmDesk::Item> CmDesk::next() {
  queue::MutexLock lock(mutex_);
  if (inbox_.empty()) return std::nullopt;
  Item item = std::move(inbox_.front());
  inbox_.pop_front();
  delivering_ = item.gsi.get();
  return item;
}

void CmDesk::on_delivered() {
  queue::MutexLock lock(mutex_);
  delivering_ = nullptr;
  delivered_.notify_all();
}

void CmDesk::deliver(const Agent& agent, std::uint64_t now, const Item& item) {
  if (const auto* mad = std::get_if<wire::Mad>(&item.what)) {
    const nicless_endpoint remote = plain(mad->from);
    const nicless_endpoint local = plain(mad->to);
    std::array<std::uint8_t, wire::kMadBytes> bytes;
    std::transform(mad->bytes.begin(), mad->bytes.end(), bytes.begin(),
                   [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
    agent.calls.on_mad(agent.self, now, item.gsi.get(), &remote, &local, bytes.data());
  } else {
    const nicless_endpoint remote = plain(std::get<Unreachable>(item.what).remote);
    agent.calls.on_unreachable(agent.self, now, &remote);
  }
}

}  // namespace nicless::provider
