// SPDX-License-Identifier: MIT
#include "wire/link.h"

#include <algorithm>
#include <utility>

namespace nicless::wire {

namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

Link::Link(LinkConfig config) : config_(config), rng_(config.seed) {}

void Link::send(queue::Instant now, LinkDatagram datagram) {
  ++counters_.sent;
  if (is_recording_) recorded_.push_back(datagram);
  for (auto it = drop_next_.begin(); it != drop_next_.end(); ++it) {
    if (!(*it)(datagram)) continue;
    drop_next_.erase(it);
    ++counters_.lost;
    return;
  }
  if (is_holding_) {
    held_.push_back(std::move(datagram));
  } else {
    transmit(now, std::move(datagram));
  }
}

std::optional<LinkDatagram> Link::take(queue::Instant now) {
  if (in_flight_.empty() || in_flight_.front().arrival > now) return std::nullopt;
  std::pop_heap(in_flight_.begin(), in_flight_.end(), arrives_later);
  LinkDatagram datagram = std::move(in_flight_.back().datagram);
  in_flight_.pop_back();
  queued_bytes_ -= datagram.bytes.size() + config_.overhead_bytes;
  ++counters_.delivered;
  return datagram;
}

std::optional<queue::Instant> Link::next_arrival() const {
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.front().arrival;
}

bool Link::is_idle() const {
  return in_flight_.empty() && held_.empty();
}

void Link::drop_next(std::function<bool(const LinkDatagram&)> matches) {
  drop_next_.push_back(std::move(matches));
}

void Link::hold() {
  is_holding_ = true;
}

void Link::release(queue::Instant now) {
  is_holding_ = false;
  for (LinkDatagram& datagram : std::exchange(held_, {})) transmit(now, std::move(datagram));
}

void Link::record(bool on) {
  is_recording_ = on;
}

// The order of the draws is fixed, and each is made whatever the others say: turning one fault off does not change
// where the others strike.
void Link::transmit(queue::Instant now, LinkDatagram datagram) {
  const bool is_lost = rng_.chance(config_.loss);
  const bool is_corrupt = rng_.chance(config_.corrupt);
  const bool is_twice = rng_.chance(config_.duplicate);
  const std::uint64_t which_bit = rng_.next_u64();
  const queue::Instant arrival = leave(now, datagram.bytes.size());
  const queue::Instant copy_arrival = delay_if_reordered(arrival);
  const queue::Instant own_arrival = delay_if_reordered(arrival);

  if (datagram.bytes.size() > config_.mtu_bytes) {
    ++counters_.oversized;
    return;
  }
  if (is_lost) {
    ++counters_.lost;
    return;
  }
  if (is_corrupt && !datagram.bytes.empty()) {
    ++counters_.corrupted;
    const std::uint64_t bit = which_bit % (datagram.bytes.size() * 8);
    datagram.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  if (own_arrival != arrival) ++counters_.reordered;
  if (is_twice) {
    ++counters_.duplicated;
    deliver(own_arrival, datagram);
    deliver(copy_arrival, std::move(datagram));
  } else {
    deliver(own_arrival, std::move(datagram));
  }
}

// When a datagram of this size is through: its turn on the line, the way, the jitter, and never before what was sent
// earlier.
queue::Instant Link::leave(queue::Instant now, std::size_t bytes) {
  queue::Instant left = now;
  if (config_.bytes_per_second > 0) {
    line_free_at_ =
        std::max(now, line_free_at_) +
        queue::Duration(static_cast<std::int64_t>(bytes * kNanosecondsPerSecond / config_.bytes_per_second));
    left = line_free_at_;
  }
  const auto jitter_max = static_cast<std::uint64_t>(config_.jitter.count());
  const queue::Duration jitter(static_cast<std::int64_t>(rng_.next_u64() % (jitter_max + 1)));
  last_arrival_ = std::max(last_arrival_, left + config_.latency + jitter);
  return last_arrival_;
}

queue::Instant Link::delay_if_reordered(queue::Instant arrival) {
  return rng_.chance(config_.reorder) ? arrival + config_.reorder_delay : arrival;
}

void Link::deliver(queue::Instant arrival, LinkDatagram datagram) {
  const std::size_t counted = datagram.bytes.size() + config_.overhead_bytes;
  if (config_.queue_bytes > 0 && queued_bytes_ + counted > config_.queue_bytes) {
    ++counters_.overflowed;
    return;
  }
  queued_bytes_ += counted;
  in_flight_.push_back({arrival, next_order_++, std::move(datagram)});
  std::push_heap(in_flight_.begin(), in_flight_.end(), arrives_later);
}

bool Link::arrives_later(const InFlight& a, const InFlight& b) {
  return a.arrival != b.arrival ? a.arrival > b.arrival : a.order > b.order;
}

}  // namespace nicless::wire
