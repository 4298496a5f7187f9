// SPDX-License-Identifier: MIT
#include "tests/sim/world.h"

#include <cstdio>
#include <exception>

#include "queue/rng.h"
#include "tests/sim/seeds.h"
#include "wire/packet/icrc.h"
#include "wire/packet/print.h"

namespace nicless::sim {

namespace {

constexpr std::size_t kTraceEntriesMax = 2000;
// An engine that keeps asking for a deadline which has passed makes no progress: that is a bug, not a long run.
constexpr std::uint64_t kStepsAtOneInstantMax = 10000;
constexpr std::uint16_t kFirstPort = 0x8f10;

}  // namespace

wire::Gid address_of(std::uint8_t n) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = std::byte{n};
  return gid;
}

World::World(std::uint64_t seed, const wire::LinkConfig& faults, std::size_t host_count, Topology topology)
    : seed_(seed), topology_(topology), exceptions_at_start_(std::uncaught_exceptions()) {
  queue::Rng seeds(seed);
  for (std::size_t i = 0; i < host_count; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + i);
    hosts_.push_back({{address_of(static_cast<std::uint8_t>(i + 1)), port}, std::make_unique<wire::Engine>(port)});
  }
  // Seeds are drawn by where a link comes from, then by where it leads to.
  links_.resize(topology == Topology::Funnels ? host_count : host_count * host_count);
  for (std::size_t from = 0; from < links_.size() / host_count; ++from) {
    for (std::size_t to = 0; to < host_count; ++to) {
      wire::LinkConfig config = faults;
      config.seed = seeds.next_u64();
      links_[to * (links_.size() / host_count) + from] = std::make_unique<wire::Link>(config);
    }
  }
}

World::~World() {
  if (std::uncaught_exceptions() == exceptions_at_start_) return;
  std::fprintf(stderr, "%s%s\n", trace().c_str(), replay_hint(seed_).c_str());
}

void World::flush(std::size_t host) {
  wire::OutDatagram out;
  while (hosts_[host].engine->next_datagram(now_, out)) {
    wire::seal(out, 0);
    ++datagrams_sent_;
    wire::LinkDatagram datagram{out.from, out.to, wire::to_bytes(out)};
    remember('>', datagram);
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      if (hosts_[to].endpoint == datagram.to) {
        link(host, to).send(now_, std::move(datagram));
        break;
      }
    }
  }
  hosts_[host].engine->on_sent();
}

void World::inject(std::size_t host, const wire::Endpoint& from, std::vector<std::byte> bytes) {
  const wire::LinkDatagram datagram{from, hosts_[host].endpoint, std::move(bytes)};
  remember('!', datagram);
  hosts_[host].engine->on_datagram(now_, {datagram.bytes, datagram.from, datagram.to});
  flush(host);
}

bool World::step() {
  const auto next = next_event();
  if (!next) return false;
  advance(*next);
  return true;
}

void World::run_until_idle(queue::Duration limit) {
  const queue::Instant end = now_ + limit;
  while (const auto next = next_event()) {
    if (*next > end) fail("the network does not come to rest");
    advance(*next);
  }
}

void World::run_until(const std::function<bool()>& done, queue::Duration limit) {
  const queue::Instant end = now_ + limit;
  while (!done()) {
    const auto next = next_event();
    if (!next) fail("the network rests, but what was waited for has not happened");
    if (*next > end) fail("what was waited for has not happened in time");
    advance(*next);
  }
}

void World::run_for(queue::Duration time) {
  const queue::Instant end = now_ + time;
  for (auto next = next_event(); next && *next <= end; next = next_event()) advance(*next);
  now_ = end;
}

void World::fail(const std::string& why) const {
  throw Failure(why + "\n" + replay_hint(seed_));
}

std::string World::trace() const {
  std::string text;
  for (const TraceEntry& entry : trace_) {
    char when[32];
    std::snprintf(when, sizeof when, "%14.3f us %c ",
                  std::chrono::duration<double, std::micro>(entry.when.time_since_epoch()).count(), entry.direction);
    text += when;
    text += wire::datagram_to_string(entry.datagram.bytes, entry.datagram.from, entry.datagram.to);
    text += '\n';
  }
  return text;
}

std::optional<queue::Instant> World::next_event() const {
  std::optional<queue::Instant> next;
  for (const auto& link : links_) next = queue::earliest(next, link->next_arrival());
  for (const Host& host : hosts_) next = queue::earliest(next, host.engine->next_deadline());
  return next;
}

// One turn of every engine at the instant `to`, or now if that has passed.
void World::advance(queue::Instant to) {
  if (to > now_) {
    now_ = to;
    steps_at_this_instant_ = 0;
  } else if (++steps_at_this_instant_ > kStepsAtOneInstantMax) {
    fail("time stands still: a deadline that has passed is asked for again and again");
  }
  for (std::size_t host = 0; host < hosts_.size(); ++host) {
    deliver_arrivals(host);
    hosts_[host].engine->on_deadline(now_);
    flush(host);
  }
}

void World::deliver_arrivals(std::size_t host) {
  for (const auto& link : links_to(host)) {
    while (auto datagram = link->take(now_)) {
      remember('<', *datagram);
      hosts_[host].engine->on_datagram(now_, {datagram->bytes, datagram->from, datagram->to});
    }
  }
}

std::span<const std::unique_ptr<wire::Link>> World::links_to(std::size_t host) const {
  const std::size_t count = links_.size() / hosts_.size();
  return std::span(links_).subspan(host * count, count);
}

void World::remember(char direction, const wire::LinkDatagram& datagram) {
  if (trace_.size() == kTraceEntriesMax) trace_.pop_front();
  trace_.push_back({now_, direction, datagram});
}

}  // namespace nicless::sim
