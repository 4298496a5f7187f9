// SPDX-License-Identifier: MIT
// Goal: no management datagram, from whomever, brings the connection manager to a crash, an impossible event or a leak.
// Method: two hosts that connect to each other, each with the QP 1 and the connection table of a real process. The
// input chooses what the programs do, what is lost, doubled or delayed, and injects frames: its own bytes or mutations
// of what was sent, with a good ICRC, and if it asks for it with the ids and queue pairs of living connections. The
// seeds hold the golden messages (seed_corpus.py).
#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <vector>

#include "cm/answers.h"
#include "cm/messages.h"
#include "cm/switchboard.h"
#include "queue/rng.h"
#include "tests/cm/story.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/sidr_end.h"
#include "wire/engine.h"
#include "wire/packet/cm_answers.h"
#include "wire/packet/icrc.h"

namespace {

using namespace nicless;
using namespace nicless::cm;
using fuzz::Input;
using fuzz::require;

constexpr std::uint16_t kPort = 7471;
constexpr std::size_t kStepsMax = 300;
constexpr std::size_t kIdsMax = 64;  // of a host: what a backlog is for
constexpr std::size_t kFramesMax = 64;
constexpr std::size_t kFrameBytesMax = 400;
constexpr std::size_t kMadAt = wire::Bth::kSize + wire::Deth::kSize;
constexpr std::size_t kLocalIdAt = kMadAt + 24, kRemoteIdAt = kLocalIdAt + 4;

using Frame = std::vector<std::byte>;

struct Id : test::Story {
  ConnectionEntry* entry = nullptr;
};

struct Host {
  explicit Host(std::uint8_t number) : endpoint{{}, kPort} {
    endpoint.address.bytes[10] = endpoint.address.bytes[11] = std::byte{0xff};
    endpoint.address.bytes[15] = std::byte{number};
  }
  wire::Endpoint endpoint;
  wire::Engine engine{kPort};
  Switchboard board;
  std::list<Id> ids;
  fuzz::SidrEnd sidr;
  std::uint32_t queue_pairs = 0;
  std::vector<Frame> arriving;  // sent by the peer
};

class Fuzz {
 public:
  explicit Fuzz(Input input) : input_(input), rng_(1) {
    for (std::uint8_t number : {1, 2}) hosts_.push_back(std::make_unique<Host>(number));
  }

  void run() {
    for (std::size_t i = 0; i < kStepsMax && !input_.is_empty(); ++i) {
      step();
      for (std::size_t host : {0, 1}) flush(host);
    }
    finish();
  }

 private:
  void step() {
    const std::uint8_t op = input_.u8();
    const std::size_t host = op & 1;
    auto& arriving = hosts_[host]->arriving;
    switch ((op >> 1) % 11) {
      case 0:
        return inject(host);
      case 1:
        return connect(host);
      case 2:
      case 3:
        return wish(host);
      case 4:
        return deliver_all();
      case 5:
        if (!arriving.empty()) deliver_one(host, input_.u8() % arriving.size());
        return;
      case 6:
        if (!arriving.empty()) arriving.erase(arriving.begin());
        return;
      case 7:
        return mutate(host);
      case 8:
        return wait();
      case 9:
        return resolve(host);
      default:
        hosts_[host]->sidr.on_unreachable(now_, hosts_[1 - host]->endpoint);
        return hosts_[host]->board.on_unreachable(now_, hosts_[1 - host]->endpoint);
    }
  }

  Identity make_identity(std::size_t host) {
    CommId id{};
    do {
      id = CommId(rng_.next_u32());
    } while (id.value() == 0 || hosts_[host]->board.find(id) != nullptr || hosts_[host]->sidr.knows(id.value()));
    return {id, rng_.next_u64(), host};
  }

  void connect(std::size_t host) {
    Host& own = *hosts_[host];
    if (own.ids.size() >= kIdsMax) return;
    const wire::Endpoint& remote = hosts_[1 - host]->endpoint;
    const RequestSpec spec{.local = own.endpoint,
                           .remote = remote,
                           .end = {.qpn = queue::Qpn(0x100 + own.queue_pairs++ % 8)},
                           .path_mtu = 3};
    Id& id = own.ids.emplace_back();
    id.is_active = true;
    id.entry = &own.board.add(Connection::connect(now_, make_identity(host), build_request(spec, {})),
                              {nullptr, own.endpoint.address, remote, 0}, owner_of(id));
    own.board.pump(*id.entry, now_);
  }

  // Of datagram services: a question, or an answer to one.
  void resolve(std::size_t host) {
    Host& own = *hosts_[host];
    const std::uint8_t what = input_.u8();
    if (what % 4 > 1) return own.sidr.answer(now_, what % 4 == 2);
    const Identity me = make_identity(host);
    own.sidr.ask(now_, me.local_id.value(), me.tid, {nullptr, own.endpoint.address, hosts_[1 - host]->endpoint, 0});
  }

  static CmId* owner_of(Id& id) { return reinterpret_cast<CmId*>(&id); }

  Id* any_id(std::size_t host) {
    auto& ids = hosts_[host]->ids;
    if (ids.empty()) return nullptr;
    Id& id = *std::next(ids.begin(), static_cast<std::ptrdiff_t>(input_.u8() % ids.size()));
    return id.entry == nullptr ? nullptr : &id;
  }

  void wish(std::size_t host) {
    const std::uint8_t what = input_.u8();
    Id* id = any_id(host);
    if (id == nullptr) return;
    Connection& c = id->entry->connection;
    switch (what % 8) {
      case 0:
      case 1:
        id->has_accepted |=
            c.accept(now_, build_reply({.qpn = queue::Qpn(0x100 + hosts_[host]->queue_pairs++ % 8)}, {})).has_value();
        break;
      case 2:
        id->has_rejected |= c.reject(wire::RejReason::ConsumerDefined, {}).has_value();
        break;
      case 3:
        id->has_established |= c.establish().has_value();
        break;
      case 4:
        static_cast<void>(c.notify_established(now_));
        break;
      case 5:
        id->has_disconnected = true;
        c.disconnect(now_);
        break;
      case 6:
        return destroy(host, *id);
      default:
        c.probe();
        break;
    }
    hosts_[host]->board.pump(*id->entry, now_);
  }

  void destroy(std::size_t host, Id& id) {
    hosts_[host]->board.orphan(*id.entry, now_);
    id.entry = nullptr;
  }

  // flags 1: a MAD to QP 1, so that the input is its 256 bytes; 2, 4: with the ids of a connection at this host.
  void inject(std::size_t host) {
    const std::uint8_t flags = input_.u8();
    const std::uint8_t from = input_.u8();
    Frame frame;
    if (flags & 1) frame = header();
    const std::size_t size = (flags & 1) && !(flags & 0x10) ? wire::CmMessage::kSize : input_.u16() % kFrameBytesMax;
    const auto bytes = input_.bytes(size);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    if ((flags & 1) && !(flags & 0x10)) frame.resize(kMadAt + wire::CmMessage::kSize);
    const Id* id = flags & 6 ? any_id(host) : nullptr;
    if (id != nullptr && frame.size() >= kRemoteIdAt + 4) {
      if (flags & 2) put32(frame, kRemoteIdAt, id->entry->connection.local_id().value());
      if (flags & 4) put32(frame, kLocalIdAt, id->entry->connection.remote_id().value());
    }
    give(host, std::move(frame), from);
  }

  static Frame header() {
    wire::OutDatagram out;
    wire::Headers headers;
    headers.bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Op::SendOnly);
    headers.bth.dest_qp = wire::kGsiQpn;
    headers.deth = {wire::kGsiQkey, wire::kGsiQpn};
    wire::finish_headers(headers, out);
    return {out.header.begin(), out.header.begin() + kMadAt};
  }

  static void put32(Frame& bytes, std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * (3 - i)));
  }

  // Seals and receives a frame without ICRC. `from` below 240: the peer.
  void give(std::size_t host, Frame frame, std::uint8_t from) {
    wire::Endpoint source = hosts_[1 - host]->endpoint;
    if (from >= 240) source.port = from;
    if (from >= 248) source.address.bytes[15] = static_cast<std::byte>(from);
    Host& own = *hosts_[host];
    frame.resize(frame.size() + wire::kIcrcBytes);
    if (frame.size() >= wire::Bth::kSize + wire::kIcrcBytes) {
      std::byte icrc[wire::kIcrcBytes];
      wire::store_icrc(wire::compute_icrc({frame, source, own.endpoint}, 0), icrc);
      std::copy_n(icrc, wire::kIcrcBytes, frame.end() - wire::kIcrcBytes);
    }
    own.engine.on_datagram(now_, {frame, source, own.endpoint});
    while (const auto mad = own.engine.gsi().take()) {
      const wire::DecodedCm decoded = wire::decode_cm(mad->bytes);
      if (decoded) on_mad(host, {nullptr, mad->to.address, mad->from, 0}, decoded.message);
    }
  }

  // As the agent of a process does it.
  void on_mad(std::size_t host, const MadPath& path, const wire::CmMessage& message) {
    Host& own = *hosts_[host];
    if (own.board.on_message(now_, path, message) || own.sidr.on_message(now_, path, message)) return;
    if (const auto* req = std::get_if<wire::CmReq>(&message.body); req != nullptr && !refuses(*req)) {
      if (own.ids.size() >= kIdsMax) return;
      Id& id = own.ids.emplace_back();
      id.entry = &own.board.add(Connection::answer(make_identity(host), message), path, owner_of(id));
      return;
    }
    if (const auto answer = wire::answer_of_nobody(message)) send(host, path.remote, *answer);
  }

  void send(std::size_t from, const wire::Endpoint& to, const wire::CmMessage& message) {
    if (to.address != hosts_[1 - from]->endpoint.address) return;
    auto& arriving = hosts_[1 - from]->arriving;
    if (arriving.size() >= kFramesMax) arriving.erase(arriving.begin());
    Frame frame = header();
    const auto mad = wire::encode(message);
    frame.insert(frame.end(), mad.begin(), mad.end());
    arriving.push_back(std::move(frame));
  }

  void flush(std::size_t host) {
    Host& own = *hosts_[host];
    while (const auto outgoing = own.board.next_message()) send(host, outgoing->path.remote, outgoing->message);
    while (const auto outgoing = own.sidr.next_message()) send(host, outgoing->path.remote, outgoing->message);
    while (const auto told = own.board.next_event()) {
      Id& id = *reinterpret_cast<Id*>(told->owner);
      require(id.entry != nullptr, "an id hears something after it was destroyed");
      require(id.hear(told->event), "an event that may not follow");
    }
  }

  void deliver_one(std::size_t host, std::size_t index) {
    auto& arriving = hosts_[host]->arriving;
    const auto place = arriving.begin() + static_cast<std::ptrdiff_t>(index);
    const Frame frame = std::move(*place);
    arriving.erase(place);
    give(host, frame, 0);
    flush(host);
  }

  void deliver_all() {
    for (int round = 0; round < 8; ++round) {
      for (std::size_t host : {0, 1}) {
        for (std::size_t left = hosts_[host]->arriving.size(); left > 0; --left) deliver_one(host, 0);
      }
    }
  }

  // A copy of what is under way, changed, cut or from elsewhere.
  void mutate(std::size_t host) {
    auto& arriving = hosts_[host]->arriving;
    if (arriving.empty()) return;
    Frame frame = arriving[input_.u8() % arriving.size()];
    const std::uint8_t from = input_.u8();
    const std::uint8_t what = input_.u8();
    if (what & 1) frame[input_.u16() % frame.size()] ^= static_cast<std::byte>(input_.u8());
    if (what & 2) frame.resize(input_.u16() % (frame.size() + 8));
    if ((what & 4) && frame.size() > kMadAt + 17) frame[kMadAt + 17] = std::byte(0x10 + input_.u8() % 12);
    give(host, std::move(frame), from);
  }

  std::optional<Instant> next_deadline() const {
    return queue::earliest(next_deadline(*hosts_[0]), next_deadline(*hosts_[1]));
  }
  static std::optional<Instant> next_deadline(const Host& host) {
    return queue::earliest(host.board.next_deadline(), host.sidr.next_deadline());
  }

  void fire() {
    for (std::size_t host : {0, 1}) {
      hosts_[host]->board.on_deadline(now_);
      hosts_[host]->sidr.on_deadline(now_);
      const auto next = next_deadline(*hosts_[host]);
      require(!next || *next > now_, "a deadline stays in the past");
      flush(host);
    }
  }

  void wait() {
    const std::uint8_t bits = input_.u8();
    const auto next = next_deadline();
    now_ = bits & 1 && next ? std::max(*next, now_) : now_ + std::chrono::milliseconds(bits * 10);
    fire();
  }

  // Every program leaves, and nothing stays behind.
  void finish() {
    for (std::size_t host : {0, 1}) close_all(host);
    for (int turn = 0; turn < 5000; ++turn) {
      deliver_all();
      for (std::size_t host : {0, 1}) close_all(host);
      const auto next = next_deadline();
      if (!next) break;
      now_ = std::max(*next, now_);
      fire();
    }
    require(!next_deadline(), "a timer runs for ever");
    for (auto& host : hosts_) require(host->board.size() == 0, "a connection is left over");
  }

  // Also what late requests have made.
  void close_all(std::size_t host) {
    hosts_[host]->sidr.leave(now_);
    for (Id& id : hosts_[host]->ids)
      if (id.entry != nullptr) destroy(host, id);
    flush(host);
  }

  Input input_;
  queue::Rng rng_;
  Instant now_{std::chrono::seconds(1)};
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fuzz(Input(data, size)).run();
  return 0;
}
