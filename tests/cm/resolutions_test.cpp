// SPDX-License-Identifier: MIT
// Goal: whatever the network does, each question about a datagram service ends once, with what the program there said,
// each request reaches that program once, and nothing is left in the end. Method: hosts that ask one another in virtual
// time, over seeded links that lose, double and reorder.
#include "cm/resolutions.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include "cm/messages.h"
#include "queue/rng.h"
#include "wire/link.h"

namespace nicless::cm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using wire::CmMessage;
using wire::CmSidrRep;
using wire::SidrStatus;

constexpr std::uint16_t kPort = 7174;
constexpr std::size_t kHosts = 3;
constexpr std::uint32_t kQuestions = 24;
constexpr std::uint32_t kQkey = 0x01234567;

wire::Endpoint endpoint_of(std::size_t host) {
  wire::Endpoint endpoint{{}, kPort};
  endpoint.address.bytes[15] = static_cast<std::byte>(host + 1);
  return endpoint;
}

std::size_t host_of(const wire::Gid& address) {
  return std::to_integer<std::size_t>(address.bytes[15]) - 1;
}

// A question by its number, which is its request id and the name of its owner.
CmId* owner_of(std::uint32_t number) {
  return reinterpret_cast<CmId*>(std::uintptr_t{number});
}

// What the program says to a request: every third is refused.
CmSidrRep verdict_on(std::uint32_t number) {
  return number % 3 == 0 ? build_sidr_refusal({}) : build_sidr_reply(queue::Qpn(number), kQkey, {});
}

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed) {
    for (std::size_t i = 0; i < kHosts * kHosts; ++i)
      links_.emplace_back(wire::LinkConfig{.seed = rng_.next_u64(),
                                           .latency = milliseconds(1),
                                           .jitter = milliseconds(3),
                                           .loss = 0.3,
                                           .duplicate = 0.3,
                                           .reorder = 0.2,
                                           .reorder_delay = milliseconds(500)});
  }

  void run() {
    for (std::uint32_t number = 1; number <= kQuestions; ++number) ask(number);
    while (step()) {
    }
  }

  std::map<std::uint32_t, std::vector<Resolution>> told;
  std::map<std::uint32_t, int> requests;  // how often a program was asked
  std::set<std::uint32_t> withdrawn;
  bool is_empty() const {
    return std::ranges::none_of(hosts_, [](const Resolutions& host) { return host.next_deadline().has_value(); });
  }

 private:
  struct Due {
    std::size_t host;
    Resolutions::AnswerKey key;
  };

  void ask(std::uint32_t number) {
    const std::size_t from = rng_.below(kHosts);
    const std::size_t to = (from + 1 + rng_.below(kHosts - 1)) % kHosts;
    const MadPath path{nullptr, endpoint_of(from).address, endpoint_of(to), 0};
    wire::CmSidrReq request = build_sidr_request(wire::PortSpace::Udp, endpoint_of(from), endpoint_of(to), {});
    request.request_id = number;
    hosts_[from].ask(now_, number, request, path, owner_of(number));
    if (number % 8 == 0) {  // the program loses interest
      hosts_[from].withdraw(number);
      withdrawn.insert(number);
    }
    flush(from);
  }

  wire::Link& link(std::size_t from, std::size_t to) { return links_[from * kHosts + to]; }

  void flush(std::size_t host) {
    while (const auto outgoing = hosts_[host].next_message()) {
      const auto bytes = wire::encode(outgoing->message);
      link(host, host_of(outgoing->path.remote.address))
          .send(now_, {endpoint_of(host), outgoing->path.remote, {bytes.begin(), bytes.end()}});
    }
    while (const auto event = hosts_[host].next_event())
      told[static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(event->owner))].push_back(event->resolution);
  }

  void arrive(std::size_t host, const wire::LinkDatagram& datagram) {
    std::array<std::byte, CmMessage::kSize> bytes{};
    std::ranges::copy(datagram.bytes, bytes.begin());
    const CmMessage message = wire::decode_cm(bytes).message;
    const MadPath path{nullptr, datagram.to.address, datagram.from, 0};
    if (!hosts_[host].on_message(now_, path, message)) {
      const std::uint32_t number = std::get<wire::CmSidrReq>(message.body).request_id;
      ++requests[number];
      const auto key = hosts_[host].take(message, path, owner_of(number));
      programs_.emplace(now_ + milliseconds(rng_.below(3000)), Due{host, key});
    }
    flush(host);
  }

  bool step() {
    std::optional<Instant> next;
    for (const wire::Link& each : links_) next = queue::earliest(next, each.next_arrival());
    for (const Resolutions& host : hosts_) next = queue::earliest(next, host.next_deadline());
    if (!programs_.empty()) next = queue::earliest(next, programs_.begin()->first);
    if (!next || *next > Instant(minutes(30))) return false;
    now_ = std::max(now_, *next);
    for (std::size_t from = 0; from < kHosts; ++from)
      for (std::size_t to = 0; to < kHosts; ++to)
        while (const auto datagram = link(from, to).take(now_)) arrive(to, *datagram);
    while (!programs_.empty() && programs_.begin()->first <= now_) {
      const Due due = programs_.begin()->second;
      programs_.erase(programs_.begin());
      CHECK(hosts_[due.host].answer(now_, due.key, verdict_on(due.key.id)).has_value());
      CHECK(hosts_[due.host].answer(now_, due.key, verdict_on(due.key.id)).error().errno_value == EINVAL);
      flush(due.host);
    }
    for (std::size_t host = 0; host < kHosts; ++host) {
      hosts_[host].on_deadline(now_);
      flush(host);
    }
    return true;
  }

  Instant now_{};
  queue::Rng rng_;
  std::array<Resolutions, kHosts> hosts_;
  std::vector<wire::Link> links_;
  std::multimap<Instant, Due> programs_;  // when they answer
};

TEST_CASE("whatever the network does, each question ends once, with what the program there said", "[sidr][seeds]") {
  const auto seed = GENERATE(range(1, 60));
  CAPTURE(seed);
  World world(static_cast<std::uint64_t>(seed));
  world.run();
  for (std::uint32_t number = 1; number <= kQuestions; ++number) {
    CAPTURE(number);
    CHECK(world.requests[number] <= 1);
    if (world.withdrawn.contains(number)) {
      CHECK(world.told[number].empty());
      continue;
    }
    REQUIRE(world.told[number].size() == 1);
    const auto* resolved = std::get_if<Resolved>(&world.told[number].front());
    REQUIRE(resolved != nullptr);
    CHECK(resolved->reply.request_id == number);
    CHECK(resolved->reply.status == verdict_on(number).status);
    CHECK(resolved->reply.qpn == verdict_on(number).qpn);
  }
  CHECK(world.is_empty());
}

TEST_CASE("an answer from another address, or to nothing that was asked, changes nothing", "[sidr]") {
  Resolutions asker;
  const MadPath path{nullptr, endpoint_of(0).address, endpoint_of(1), 0};
  const MadPath elsewhere{nullptr, endpoint_of(0).address, endpoint_of(2), 0};
  wire::CmSidrReq request = build_sidr_request(wire::PortSpace::Udp, endpoint_of(0), endpoint_of(1), {});
  request.request_id = 5;
  asker.ask({}, 5, request, path, owner_of(5));
  CHECK(asker.next_message().has_value());
  CmSidrRep reply = verdict_on(5);
  reply.request_id = 5;
  CHECK(asker.on_message({}, elsewhere, {5, reply}));
  reply.request_id = 6;
  CHECK(asker.on_message({}, path, {6, reply}));
  CHECK(asker.knows(5));
  CHECK_FALSE(asker.next_event().has_value());
}

TEST_CASE("a request that nobody takes is refused, and asked anew if it comes again", "[sidr]") {
  Resolutions service;
  const MadPath path{nullptr, endpoint_of(0).address, endpoint_of(1), 0};
  wire::CmSidrReq request = build_sidr_request(wire::PortSpace::Udp, endpoint_of(1), endpoint_of(0), {});
  request.request_id = 5;
  const CmMessage message{5, request};
  CHECK_FALSE(service.on_message({}, path, message));
  service.refuse(message, path);
  const auto refusal = service.next_message();
  REQUIRE(refusal.has_value());
  CHECK(std::get<CmSidrRep>(refusal->message.body).status == SidrStatus::Rejected);
  CHECK_FALSE(service.on_message({}, path, message));
}

}  // namespace
}  // namespace nicless::cm::test
