// SPDX-License-Identifier: MIT
// Goal: the engine hands each good packet to the queue pair it names, drops and counts everything else, serves queue
// pairs fairly in bounded bursts and knows the earliest deadline. Method: queue pairs that only write down what the
// engine asks of them, and datagrams built by the codec and then spoilt.
#include "wire/engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "queue/rng.h"
#include "tests/support/mads.h"
#include "wire/packet/icrc.h"

namespace nicless::wire {
namespace {

using std::chrono::milliseconds;
constexpr queue::Instant kNow{milliseconds(5)};
constexpr std::uint16_t kPort = 0x8f12;
constexpr Addressing kAddressing = Addressing::port_in_qpn();

Gid ipv4(std::uint8_t last) {
  Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = std::byte{last};
  return gid;
}

const Endpoint kHere{ipv4(1), kPort};
const Endpoint kThere{ipv4(2), 0x4000};

// Sends as many empty packets as it was given to send.
class CountingQueuePair : public QueuePair {
 public:
  void on_packet(queue::Instant, const PacketView& packet, const InDatagram&) override {
    packets.push_back(packet.headers);
  }
  void on_post(queue::Instant) override { ++posts; }
  void on_deadline(queue::Instant) override {
    ++deadlines;
    deadline.reset();
  }
  bool next_datagram(queue::Instant, OutDatagram& out) override {
    if (to_send == 0) return false;
    --to_send;
    out.from = Endpoint{kHere.address, source_port};
    out.to = Endpoint{ipv4(2), 0};
    out.span_count = 0;
    out.payload_bytes = 0;
    Headers headers;
    headers.bth.opcode = opcode_of(Service::Rc, Op::SendOnly);
    headers.bth.dest_qp = peer;
    finish_headers(headers, out);
    return true;
  }
  std::optional<queue::Instant> next_deadline() const override { return deadline; }

  std::vector<Headers> packets;
  int posts = 0;
  int deadlines = 0;
  int to_send = 0;
  queue::Qpn peer{};
  std::uint16_t source_port = 0;
  std::optional<queue::Instant> deadline;
};

struct Fixture {
  Engine engine{kPort};
  CountingQueuePair queue_pair;
  queue::Qpn qpn = *engine.reserve_qpn();
  Fixture() { engine.add(qpn, queue_pair); }

  void receive(std::span<const std::byte> bytes) { engine.on_datagram(kNow, {bytes, kThere, kHere}); }
};

std::vector<std::byte> sealed(const Headers& headers, std::span<const std::byte> payload = {}) {
  OutDatagram out;
  out.from = kThere;
  out.to = kHere;
  out.spans[0] = payload;
  out.span_count = 1;
  out.payload_bytes = payload.size();
  finish_headers(headers, out);
  seal(out, 0);
  return to_bytes(out);
}

Headers send_only(queue::Qpn qpn) {
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Rc, Op::SendOnly);
  headers.bth.dest_qp = qpn;
  headers.bth.psn = Psn(77);
  return headers;
}

TEST_CASE("a good packet reaches the queue pair it names", "[engine]") {
  Fixture f;
  const std::array<std::byte, 5> payload{};
  f.receive(sealed(send_only(f.qpn), payload));
  Headers expected = send_only(f.qpn);
  expected.bth.pad_count = 3;
  CHECK(f.queue_pair.packets == std::vector{expected});
  CHECK(f.engine.counters() == EngineCounters{.datagrams_in = 1});
}

TEST_CASE("the partition key matches as full and as limited member, and no other", "[engine]") {
  Fixture f;
  Headers headers = send_only(f.qpn);
  for (const std::uint16_t pkey : {0xffff, 0x7fff, 0xfffe, 0x0001, 0x8001}) {
    headers.bth.pkey = pkey;
    f.receive(sealed(headers));
  }
  CHECK(f.queue_pair.packets.size() == 2);
  CHECK(f.engine.counters() == EngineCounters{.datagrams_in = 5, .bad_pkey = 3});
}

TEST_CASE("a packet for a queue pair that is not here is dropped and counted", "[engine]") {
  Fixture f;
  const auto reserved = *f.engine.reserve_qpn();  // taken, but no queue pair stands behind it yet
  f.receive(sealed(send_only(reserved)));
  f.receive(sealed(send_only(kAddressing.qpn(kPort + 1, 0))));  // right index, other port
  f.receive(sealed(send_only(queue::Qpn(0))));
  f.engine.remove(f.qpn);
  f.receive(sealed(send_only(f.qpn)));
  CHECK(f.queue_pair.packets.empty());
  CHECK(f.engine.counters() == EngineCounters{.datagrams_in = 4, .unknown_qpn = 4});
}

TEST_CASE("each kind of malformed datagram has its counter and changes nothing", "[engine]") {
  Fixture f;
  Headers headers = send_only(f.qpn);
  const std::array<std::byte, 8> payload{};

  f.receive({});
  auto bytes = sealed(headers, payload);
  f.receive(std::span(bytes).first(11));
  headers.bth.version = 1;
  f.receive(sealed(headers));
  headers = send_only(f.qpn);
  bytes = sealed(headers, payload);
  bytes[0] = std::byte{0x1f};  // no such RC operation
  f.receive(bytes);
  bytes = sealed(headers);
  bytes[1] |= std::byte{0x30};  // three pad bytes of no payload
  f.receive(bytes);
  bytes = sealed(headers, payload);
  bytes[15] ^= std::byte{1};
  f.receive(bytes);

  CHECK(f.queue_pair.packets.empty());
  const EngineCounters& counters = f.engine.counters();
  CHECK(counters.truncated + counters.bad_pad == 3);
  CHECK(counters == EngineCounters{.datagrams_in = 6,
                                   .truncated = counters.truncated,
                                   .bad_version = 1,
                                   .unknown_opcode = 1,
                                   .bad_pad = counters.bad_pad,
                                   .bad_icrc = 1});
}

TEST_CASE("no random bytes get through, and all are counted", "[engine]") {
  Fixture f;
  queue::Rng rng(11);
  std::vector<std::byte> bytes;
  for (int i = 0; i < 20000; ++i) {
    bytes.resize(rng.below(80));
    for (auto& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    f.receive(bytes);
  }
  const EngineCounters& c = f.engine.counters();
  CHECK(f.queue_pair.packets.empty());
  CHECK(c.datagrams_in == 20000);
  CHECK(c.truncated + c.bad_version + c.unknown_opcode + c.bad_pad + c.bad_icrc == 20000);
}

TEST_CASE("a datagram for QP 1 goes to the GSI, and its answers go out before data", "[engine]") {
  Fixture f;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Ud, Op::SendOnly);
  headers.bth.dest_qp = kGsiQpn;
  headers.deth = {kGsiQkey, kGsiQpn};
  const MadBytes mad = test::numbered_mad(1);
  f.receive(sealed(headers, mad));
  CHECK(f.engine.gsi().has_arrivals());
  CHECK(f.queue_pair.packets.empty());

  f.queue_pair.to_send = 1;
  f.engine.on_post(kNow, f.qpn);
  f.engine.gsi().post(*f.engine.gsi().take());
  OutDatagram out;
  REQUIRE(f.engine.next_datagram(kNow, out));
  CHECK(out.payload_bytes == kMadBytes);
  REQUIRE(f.engine.next_datagram(kNow, out));
  CHECK(out.payload_bytes == 0);
  CHECK(!f.engine.next_datagram(kNow, out));
  CHECK(f.engine.counters() == EngineCounters{.datagrams_in = 1, .datagrams_out = 2});

  f.receive(sealed(headers, MadBytes{}));  // of no class
  CHECK(f.engine.counters() == EngineCounters{.datagrams_in = 2, .datagrams_out = 2, .bad_mad = 1});
}

TEST_CASE("what queue pairs have counted stays when they go", "[engine]") {
  struct Counting final : CountingQueuePair {
    const QpCounters* find_counters() const override { return &counts; }
    QpCounters counts{.late = 3};
  };
  Engine engine(kPort);
  Counting gone, here;
  here.counts.rnr_sent = 2;
  const queue::Qpn first = *engine.reserve_qpn();
  engine.add(first, gone);
  engine.add(*engine.reserve_qpn(), here);
  CHECK(engine.queue_pair_counters() == QpCounters{.late = 6, .rnr_sent = 2});
  engine.remove(first);
  CHECK(engine.queue_pair_counters() == QpCounters{.late = 6, .rnr_sent = 2});
}

TEST_CASE("256 queue pair numbers, and the one freed last is reused last", "[engine]") {
  Engine engine(kPort);
  std::vector<queue::Qpn> qpns;
  for (std::uint32_t i = 0; i < 256; ++i) qpns.push_back(*engine.reserve_qpn());
  CHECK(std::set(qpns.begin(), qpns.end()).size() == 256);
  for (const auto qpn : qpns) CHECK(qpn.value() >> 8 == kPort);
  const auto none = engine.reserve_qpn();
  REQUIRE(!none);
  CHECK(none.error().errno_value == ENOMEM);
  CHECK(engine.reserved_qpns() == 256);
  engine.remove(qpns[9]);
  engine.remove(qpns[3]);
  CHECK(*engine.reserve_qpn() == qpns[9]);
  CHECK(*engine.reserve_qpn() == qpns[3]);
}

TEST_CASE("but in strict mode, packets come from the port's own UDP port, whichever the queue pair would choose",
          "[engine]") {
  Fixture f;
  f.queue_pair.to_send = 1;
  f.queue_pair.source_port = 0xc123;
  f.engine.on_post(kNow, f.qpn);
  OutDatagram out;
  REQUIRE(f.engine.next_datagram(kNow, out));
  CHECK(out.from == Endpoint{kHere.address, kPort});
}

TEST_CASE("in strict mode a number says nothing: it is free, and its packets go to the RoCE v2 port", "[engine]") {
  const std::uint32_t first =
      GENERATE(as<std::uint32_t>{}, Addressing::kStrictQpnFirst, 0x123456, Addressing::kStrictQpnFirstMax);
  Engine engine(kRoceUdpPort, Addressing::strict(first));
  std::array<CountingQueuePair, 300> queue_pairs;  // more than a port takes that is named by its numbers
  std::set<queue::Qpn> qpns;
  for (CountingQueuePair& queue_pair : queue_pairs) {
    const queue::Qpn qpn = *engine.reserve_qpn();
    CHECK(qpn.value() == first + qpns.size());
    qpns.insert(qpn);
    engine.add(qpn, queue_pair);
  }
  CHECK(qpns.size() == queue_pairs.size());
  const queue::Qpn last = *qpns.rbegin();
  queue_pairs[0].to_send = 1;
  queue_pairs[0].peer = queue::Qpn(0xfffffe);
  engine.on_post(kNow, *qpns.begin());
  OutDatagram out;
  REQUIRE(engine.next_datagram(kNow, out));
  CHECK(out.from == Endpoint{kHere.address, kRoceUdpPort});
  CHECK(out.to == Endpoint{ipv4(2), kRoceUdpPort});
  queue_pairs[0].to_send = 1;
  queue_pairs[0].source_port = 0xc123;
  engine.on_post(kNow, *qpns.begin());
  REQUIRE(engine.next_datagram(kNow, out));
  CHECK(out.from == Endpoint{kHere.address, 0xc123});

  const auto bytes = sealed(send_only(last));
  engine.on_datagram(kNow, {bytes, kThere, kHere});
  CHECK(queue_pairs.back().packets.size() == 1);
  const auto beyond = sealed(send_only(queue::Qpn(last.value() + 1)));
  engine.on_datagram(kNow, {beyond, kThere, kHere});
  CHECK(engine.counters() == EngineCounters{.datagrams_in = 2, .datagrams_out = 2, .unknown_qpn = 1});
}

TEST_CASE("queue pairs take turns in bursts of at most kBurstMax datagrams", "[engine]") {
  Engine engine(kPort);
  std::array<CountingQueuePair, 3> queue_pairs;
  const std::array<int, 3> amounts{40, 5, 17};
  for (std::uint16_t i = 0; i < 3; ++i) {
    const auto qpn = *engine.reserve_qpn();
    queue_pairs[i].peer = kAddressing.qpn(i, 7);
    queue_pairs[i].to_send = amounts[i];
    engine.add(qpn, queue_pairs[i]);
    engine.on_post(kNow, qpn);
  }
  std::vector<std::pair<int, int>> runs;  // (who, how many in a row)
  OutDatagram out;
  while (engine.next_datagram(kNow, out)) {
    CHECK(out.from == kHere);
    if (runs.empty() || runs.back().first != out.to.port) runs.emplace_back(out.to.port, 0);
    ++runs.back().second;
  }
  CHECK(runs == std::vector<std::pair<int, int>>{{0, 16}, {1, 5}, {2, 16}, {0, 16}, {2, 1}, {0, 8}});
  CHECK(!engine.next_datagram(kNow, out));
}

TEST_CASE("a queue pair is asked again after a packet, a post or its deadline, and only then", "[engine]") {
  Fixture f;
  OutDatagram out;
  CHECK(!f.engine.next_datagram(kNow, out));
  f.queue_pair.to_send = 1;
  CHECK(!f.engine.next_datagram(kNow, out));
  f.receive(sealed(send_only(f.qpn)));
  CHECK(f.engine.next_datagram(kNow, out));
  CHECK(!f.engine.next_datagram(kNow, out));
  f.queue_pair.to_send = 1;
  f.engine.on_post(kNow, f.qpn);
  CHECK(f.queue_pair.posts == 1);
  CHECK(f.engine.next_datagram(kNow, out));
  CHECK(!f.engine.next_datagram(kNow, out));
  f.queue_pair.deadline = kNow;
  f.engine.on_post(kNow, f.qpn);
  CHECK(!f.engine.next_datagram(kNow, out));
  f.queue_pair.to_send = 1;
  f.engine.on_deadline(kNow);
  CHECK(f.engine.next_datagram(kNow, out));
}

TEST_CASE("the engine's deadline is the earliest, and only those that are due are served", "[engine]") {
  Fixture f;
  CountingQueuePair other;
  f.engine.add(*f.engine.reserve_qpn(), other);
  CHECK(!f.engine.next_deadline());
  f.queue_pair.deadline = kNow + milliseconds(2);
  other.deadline = kNow + milliseconds(1);
  CHECK(f.engine.next_deadline() == kNow + milliseconds(1));
  f.engine.on_deadline(kNow);
  CHECK(f.queue_pair.deadlines + other.deadlines == 0);
  f.engine.on_deadline(kNow + milliseconds(1));
  CHECK(f.queue_pair.deadlines == 0);
  CHECK(other.deadlines == 1);
  CHECK(f.engine.next_deadline() == kNow + milliseconds(2));
}

TEST_CASE("a queue pair that goes away in the middle of its burst is not asked again", "[engine]") {
  Fixture f;
  f.queue_pair.to_send = 10;
  f.engine.on_post(kNow, f.qpn);
  OutDatagram out;
  CHECK(f.engine.next_datagram(kNow, out));
  f.engine.remove(f.qpn);
  CHECK(!f.engine.next_datagram(kNow, out));
  CHECK(f.queue_pair.to_send == 9);
  f.engine.on_post(kNow, f.qpn);  // a late call for a number that is gone is harmless
  CHECK(f.queue_pair.posts == 1);
}

}  // namespace
}  // namespace nicless::wire
