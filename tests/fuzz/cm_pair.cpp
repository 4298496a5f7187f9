// SPDX-License-Identifier: MIT
// Goal: whatever two programs and the network do to a connection, its two machines stay sound: they say each thing at
// most once and in a possible order, their deadlines advance, and left alone they come to rest. Method: each byte of
// the input is a call, a delivery, a loss, a duplicate, a forgery or a wait, from whatever state the last one left.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "cm/connection.h"
#include "cm/messages.h"
#include "queue/check.h"
#include "tests/fuzz/input.h"

using namespace nicless;
using namespace nicless::cm;

namespace {

constexpr Identity kActive{CommId(0x1111), 0x211110000, 0xa};
constexpr Identity kPassive{CommId(0x2222), 0x222220000, 0xb};

// One end, its program's view, and what is under way to it.
struct End {
  std::optional<Connection> connection;
  std::deque<wire::CmMessage> arriving;
  std::set<std::size_t> seen;  // indexes of ConnectionEvent
  bool is_abandoned = false;

  void take(const ConnectionEvent& event) {
    constexpr std::size_t kRejected = 2;
    constexpr std::size_t kDisconnected = 4;
    constexpr std::size_t kTimewait = 5;
    NICLESS_CHECK(!is_abandoned);
    NICLESS_CHECK(seen.insert(event.index()).second);
    NICLESS_CHECK(event.index() != kTimewait || seen.contains(kDisconnected) || seen.contains(kRejected));
    NICLESS_CHECK(event.index() == kTimewait || !seen.contains(kTimewait));
  }
};

wire::CmReq request() {
  wire::Endpoint somewhere;
  somewhere.port = 7471;
  return build_request({.local = {}, .remote = somewhere, .end = {.qpn = queue::Qpn(0x100)}, .path_mtu = 3}, {});
}

wire::CmRep reply() {
  return build_reply({.qpn = queue::Qpn(0x200)}, {});
}

class World {
 public:
  World() { active_.connection = Connection::connect(now_, kActive, request()); }

  void step(fuzz::Input& input) {
    const std::uint8_t code = input.u8();
    End& end = (code & 1) != 0 ? passive_ : active_;
    switch ((code >> 1) % 10) {
      case 0:
      case 1:
        deliver(end);
        break;
      case 2:
        if (!end.arriving.empty()) end.arriving.pop_front();
        break;
      case 3:
        if (!end.arriving.empty()) end.arriving.push_back(end.arriving.front());
        break;
      case 4:
        if (!end.arriving.empty()) std::swap(end.arriving.front(), end.arriving.back());
        break;
      case 5:
        wish(end, input.u8());
        break;
      case 6:
        wait_for_deadline();
        break;
      case 7:
        now_ += std::chrono::milliseconds(input.u8() * 40);
        fire();
        break;
      case 8:
        forge(end, input);
        break;
      default:
        if (end.connection) end.connection->on_unreachable(now_);
        break;
    }
    drain();
  }

  // Nothing lost any more, and nobody wants anything: it comes to rest.
  void settle() {
    for (int turns = 0; turns < 1000; ++turns) {
      while (!active_.arriving.empty() || !passive_.arriving.empty()) {
        deliver(active_);
        deliver(passive_);
        drain();
      }
      if (!wait_for_deadline()) return;
      drain();
    }
    NICLESS_CHECK(!"the connection never rests");
  }

 private:
  void deliver(End& end) {
    if (end.arriving.empty()) return;
    const wire::CmMessage message = end.arriving.front();
    end.arriving.pop_front();
    if (end.connection) return end.connection->on_message(now_, message);
    if (&end == &passive_ && std::holds_alternative<wire::CmReq>(message.body))
      end.connection = Connection::answer(kPassive, message);
  }

  void wish(End& end, std::uint8_t what) {
    if (!end.connection) return;
    Connection& c = *end.connection;
    switch (what % 8) {
      case 0:
        static_cast<void>(c.accept(now_, reply()));
        break;
      case 1:
        static_cast<void>(c.reject(wire::RejReason::ConsumerDefined, {}));
        break;
      case 2:
        static_cast<void>(c.establish());
        break;
      case 3:
        static_cast<void>(c.notify_established(now_));
        break;
      case 4:
        c.disconnect(now_);
        break;
      case 5:
        c.abandon(now_);
        end.is_abandoned = true;
        break;
      default:
        c.probe();
        break;
    }
  }

  // A message that nobody sent: right or wrong ids, any kind.
  void forge(End& end, fuzz::Input& input) {
    const std::uint8_t kind = input.u8();
    const CommId mine = (kind & 0x80) != 0 ? CommId(input.u8())
                        : end.connection   ? end.connection->local_id()
                                           : CommId(0);
    const CommId theirs = (kind & 0x40) != 0 ? CommId(input.u8())
                          : end.connection   ? end.connection->remote_id()
                                             : CommId(1);
    const queue::Qpn qpn(&end == &active_ ? 0x100 : 0x200);
    wire::CmMessage message{input.u8(), wire::CmRtu{.local_id = theirs, .remote_id = mine}};
    switch (kind % 8) {
      case 0:
        message.body = wire::CmMra{
            .local_id = theirs, .remote_id = mine, .service_timeout = static_cast<std::uint8_t>(input.u8() & 15)};
        break;
      case 1:
        message.body = wire::CmRej{.local_id = theirs, .remote_id = mine};
        break;
      case 2: {
        wire::CmRep rep = reply();
        rep.local_id = theirs;
        rep.remote_id = mine;
        message.body = rep;
        break;
      }
      case 3:
        message.body = wire::CmDreq{.local_id = theirs, .remote_id = mine, .remote_qpn = qpn};
        break;
      case 4:
        message.body = wire::CmDrep{.local_id = theirs, .remote_id = mine};
        break;
      case 5:
        message.body = request();
        break;
      default:
        break;
    }
    if (end.connection) end.connection->on_message(now_, message);
  }

  bool wait_for_deadline() {
    std::optional<Instant> next;
    if (active_.connection) next = queue::earliest(next, active_.connection->next_deadline());
    if (passive_.connection) next = queue::earliest(next, passive_.connection->next_deadline());
    if (!next) return false;
    now_ = std::max(now_, *next);
    fire();
    return true;
  }

  void fire() {
    for (End* end : {&active_, &passive_}) {
      if (!end->connection) continue;
      end->connection->on_deadline(now_);
      const auto next = end->connection->next_deadline();
      NICLESS_CHECK(!next || *next > now_);
    }
  }

  void drain() {
    drain(active_, passive_);
    drain(passive_, active_);
  }

  void drain(End& from, End& to) {
    if (!from.connection) return;
    while (auto message = from.connection->next_message()) {
      const auto decoded = wire::decode_cm(wire::encode(*message));
      NICLESS_CHECK(decoded && decoded.message == *message);
      if (to.arriving.size() < 64) to.arriving.push_back(*message);
    }
    while (const auto event = from.connection->next_event()) from.take(*event);
  }

  Instant now_{};
  End active_;
  End passive_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  World world;
  while (!input.is_empty()) world.step(input);
  world.settle();
  return 0;
}
