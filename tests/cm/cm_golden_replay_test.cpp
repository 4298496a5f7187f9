// SPDX-License-Identifier: MIT
// Goal: a process says in each captured exchange of the connection manager what the Linux kernel said in its place,
// from the first message to the last, or the difference has a name and a row in docs/WIRE.md. Method: a whole capture
// is played to the connection table of one end: the peer's messages arrive, the program's wishes are read off what the
// kernel's end said, and lost time passes; messages are compared whole.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "cm/switchboard.h"
#include "tests/cm/kernel_like.h"
#include "tests/support/golden.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/packet.h"
#include "wire/packet/print.h"

namespace nicless::cm::test {
namespace {

using Names = std::vector<std::string>;

struct Spoken {
  bool is_clients = false;
  wire::Endpoint from, to;
  wire::CmMessage message;
};

// The client is who asks first.
std::vector<Spoken> conversation(const std::string& name) {
  std::vector<Spoken> spoken;
  std::optional<wire::Gid> client;
  for (const nicless::test::GoldenPacket& packet : nicless::test::golden_packets(name)) {
    const wire::Decoded decoded = wire::decode(packet.bytes);
    if (!decoded || decoded.packet.payload.size() != wire::CmMessage::kSize) continue;
    const auto cm = wire::decode_cm(decoded.packet.payload.first<wire::CmMessage::kSize>());
    if (!cm) continue;
    if (!client) client = packet.from.address;
    spoken.push_back({packet.from.address == *client, packet.from, packet.to, cm.message});
  }
  return spoken;
}

template <typename Body>
const Body* as(const wire::CmMessage& message) {
  return std::get_if<Body>(&message.body);
}

CommId sender_of(const wire::CmMessage& message) {
  return std::visit(
      [](const auto& body) {
        if constexpr (requires { body.local_id; }) return body.local_id;
        return CommId{};
      },
      message.body);
}

class Player {
 public:
  Player(const std::string& name, bool is_client) : is_client_(is_client), spoken_(conversation(name)) {
    put_crossing_releases_in_order();
  }

  // What differs from the capture, each kind once.
  std::set<std::string> run() {
    for (std::size_t at = 0; at < spoken_.size(); ++at) {
      if (spoken_[at].is_clients == is_client_) {
        say(spoken_[at]);
      } else {
        hear(at);
      }
      collect();
    }
    for (const wire::CmMessage& message : said_) differences_.insert(std::string("also says ") + name_of(message));
    return differences_;
  }

 private:
  // Releases that cross are captured where they left: this end's had not heard of the other's yet.
  void put_crossing_releases_in_order() {
    for (std::size_t i = 1; i < spoken_.size(); ++i) {
      Spoken& heard = spoken_[i - 1];
      Spoken& own = spoken_[i];
      if (heard.is_clients != is_client_ && own.is_clients == is_client_ && as<wire::CmDreq>(heard.message) &&
          as<wire::CmDreq>(own.message))
        std::swap(heard, own);
    }
  }

  void say(const Spoken& own) {
    if (said_.empty()) wish(own);
    collect();
    const bool is_repeated = !own_said_.insert(wire::to_string(own.message)).second;
    if (said_.empty() && is_repeated) pass_time();
    if (said_.empty()) {
      differences_.insert(std::string("does not say ") + name_of(own.message));
      return;
    }
    if (said_.front() != own.message) {
      CHECK(wire::to_string(said_.front()) == wire::to_string(own.message));
      differences_.insert(std::string("says otherwise ") + name_of(own.message));
    }
    said_.pop_front();
  }

  // What the program must have wanted for the kernel to say this.
  void wish(const Spoken& own) {
    const wire::CmMessage& message = own.message;
    if (const auto* req = as<wire::CmReq>(message)) return connect(own, *req);
    ConnectionEntry* entry = board_.find(sender_of(message));
    if (entry == nullptr) return;
    Connection& c = entry->connection;
    if (const auto* rep = as<wire::CmRep>(message)) {
      static_cast<void>(c.accept(now_, build_reply(end_of(*rep), rep->private_data)));
    } else if (as<wire::CmRtu>(message)) {
      static_cast<void>(c.establish());
    } else if (as<wire::CmDreq>(message)) {
      c.disconnect(now_);
    } else if (const auto* rej = as<wire::CmRej>(message)) {
      if (rej->reason == wire::RejReason::Timeout) return board_.orphan(*entry, now_);
      static_cast<void>(c.reject(rej->reason, rej->private_data));
    }
    board_.pump(*entry, now_);
  }

  void connect(const Spoken& own, const wire::CmReq& req) {
    if (board_.find(req.local_id) != nullptr) return;
    const Identity me{req.local_id, own.message.tid, req.local_ca_guid};
    std::uint8_t lifetime = 0;  // that of the kernel then, or what the program made of it
    while (lifetime < 31 && ack_timeout(kTargetAckDelay, lifetime) != req.primary.ack_timeout) ++lifetime;
    board_.pump(board_.add(Connection::connect(now_, me, rebuild(req, lifetime)),
                           {nullptr, own.from.address, own.to, 0}, kOwner),
                now_);
  }

  void hear(std::size_t at) {
    const Spoken& heard = spoken_[at];
    const MadPath path{nullptr, heard.to.address, heard.from, 0};
    if (board_.on_message(now_, path, heard.message)) return;
    if (const auto* req = as<wire::CmReq>(heard.message)) return asked(at, path, *req);
    if (const auto answer = wire::answer_of_nobody(heard.message)) said_.push_back(*answer);
  }

  void asked(std::size_t at, const MadPath& path, const wire::CmReq& req) {
    const wire::CmMessage* answer = answer_to(at, req.local_id);
    if (answer == nullptr) return;  // nobody was there
    if (sender_of(*answer).value() == 0) {
      said_.push_back(wire::refusal(spoken_[at].message, as<wire::CmRej>(*answer)->reason));
      return;
    }
    const auto* rep = as<wire::CmRep>(*answer);
    const auto tid_high = own_tid(sender_of(*answer));
    const Identity me = identity_of(sender_of(*answer), tid_high, rep != nullptr ? rep->local_ca_guid : 0);
    board_.add(Connection::answer(me, spoken_[at].message), path, kOwner);
  }

  const wire::CmMessage* answer_to(std::size_t at, CommId asker) const {
    for (std::size_t i = at; i < spoken_.size(); ++i) {
      const wire::CmMessage& message = spoken_[i].message;
      if (spoken_[i].is_clients != is_client_) continue;
      const auto* rep = as<wire::CmRep>(message);
      const auto* rej = as<wire::CmRej>(message);
      if ((rep != nullptr && rep->remote_id == asker) || (rej != nullptr && rej->remote_id == asker)) return &message;
    }
    return nullptr;
  }

  // The kernel's transaction ids of exchanges that this end began.
  std::uint64_t own_tid(CommId id) const {
    for (const Spoken& own : spoken_) {
      if (own.is_clients == is_client_ && as<wire::CmDreq>(own.message) && sender_of(own.message) == id)
        return own.message.tid;
    }
    return 0;
  }

  void pass_time() {
    while (said_.empty() && board_.next_deadline()) {
      now_ = *board_.next_deadline();
      board_.on_deadline(now_);
      collect();
    }
  }

  void collect() {
    while (const auto outgoing = board_.next_message()) said_.push_back(outgoing->message);
    while (board_.next_event()) {
    }
  }

  static constexpr CmId* kOwner = nullptr;
  const bool is_client_;
  std::vector<Spoken> spoken_;
  Switchboard board_;
  Instant now_{std::chrono::seconds(1)};
  std::deque<wire::CmMessage> said_;
  std::set<std::string> own_said_;
  std::set<std::string> differences_;
};

// By capture and end; docs/WIRE.md says why.
const std::map<std::string, std::set<std::string>>& known_differences() {
  static const std::set<std::string> confirmed{"also says DREP"};
  static const std::map<std::string, std::set<std::string>> known{
      // Crossing releases: the kernel leaves out the confirmation once it has the other end's.
      {"nak-badkey-3000 server", confirmed},
      {"nak-badkey-64 server", confirmed},
      {"rdma_server_client client", confirmed},
      // The first releases were lost behind the capture.
      {"retry-exceeded server", confirmed},
  };
  return known;
}

TEST_CASE("both ends of each captured conversation say what the kernel's ends said", "[golden][cm]") {
  const std::string name =
      GENERATE("cm-client-dies", "cm-slow-accept", "cmtime", "disconnect-by-kill", "duplicate-client-tx",
               "ib_send_lat-cm", "loss-client-tx", "loss-server-tx", "nak-badkey-3000", "nak-badkey-64",
               "nak-badrange-64", "nak-big", "rdma_server_client", "rej-consumer", "rej-destroy", "rej-no-listener",
               "rej-no-listener-ipv6", "reorder-client-tx", "req-to-host-without-rdma", "retry-exceeded",
               "rnr-exceeded", "rnr-late-recv", "rping-C2", "rping-C2-ipv6", "rping-S3000", "rxt-acktimeout",
               "rxt-mw-sendinv", "rxt-ops", "rxt-ops-ipv6", "rxt-ps-ib-rc", "rxt-tos", "ucmatose", "ucmatose-c2");
  const bool is_client = GENERATE(true, false);
  CAPTURE(name, is_client);
  const auto place = known_differences().find(name + (is_client ? " client" : " server"));
  const std::set<std::string> expected = place == known_differences().end() ? std::set<std::string>{} : place->second;
  CHECK(Player(name, is_client).run() == expected);
}

}  // namespace
}  // namespace nicless::cm::test
