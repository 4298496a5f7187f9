// SPDX-License-Identifier: MIT
// Goal: the loss of the last packet, or of the answer to it, is mended within a few round trips and costs no retry.
// Method: an ExactPair that has exchanged one message, so that a round trip is known; then packets are not carried
// over.
#include <catch2/catch.hpp>

#include "tests/sim/script.h"
#include "wire/rc/tail_probe.h"

namespace nicless::sim {
namespace {

using queue::SendOpcode;
using queue::WcStatus;
using wire::Op;

using Packets = std::vector<Packet>;
using Wcs = std::vector<Wc>;

constexpr queue::Duration kSilence = wire::TailProbe::kSilenceMin;

// The first message has been answered: A's next packet is kPsnA + 1.
struct ProbeScript : Script {
  explicit ProbeScript(const ConnectionConfig& connection = {}) : Script(connection) {
    post_recv(100, 100);
    post(SendOpcode::Send, 100, 100);
    carry_all();
    CHECK(a.poll_send() == Wcs{sent_ok(100)});
    CHECK(b.poll_recv() == Wcs{received(100, 100)});
  }
  void be_silent() {
    CHECK(a.engine().next_deadline() == now + kSilence);
    expire(a);
  }
};

TEST_CASE("a lost last packet goes out again after some silence", "[rc][probe]") {
  ProbeScript s;
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  const Packets request = s.take(s.a);
  s.give(s.b, request[0]);
  s.give(s.b, request[1]);
  s.be_silent();
  const Packets probe = s.take(s.a);
  CHECK(probe == Packets{request[2]});
  s.give_all(s.b, probe);
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
  CHECK(s.b.poll_recv() == Wcs{received(7, 2500)});
  CHECK(s.is_at_rest());
}

TEST_CASE("the answer to the last packet says where the gap is, and the rest is sent from there", "[rc][probe]") {
  ProbeScript s;
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  const Packets request = s.take(s.a);
  s.give(s.b, request[0]);
  s.be_silent();
  s.give_all(s.b, s.take(s.a));
  const Packets answer = s.take(s.b);
  CHECK(answer == Packets{s.nak(wire::NakCode::PsnSequenceError, kPsnA + 2, 1)});
  s.give_all(s.a, answer);
  CHECK(without_ack_req(s.take(s.a)) == without_ack_req({request[1], request[2]}));
}

TEST_CASE("a lost ACK is asked for with the last packet, whose copy changes nothing", "[rc][probe]") {
  ProbeScript s;
  s.post_recv(7, 100);
  s.post_recv(8, 100);
  s.post(SendOpcode::Send, 1, 100);
  s.give_all(s.b, s.take(s.a));
  CHECK(s.take(s.b).size() == 1);  // lost
  s.be_silent();
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
  CHECK(s.b.poll_recv() == Wcs{received(7, 100)});
}

TEST_CASE("a lost NAK is said again to the packet that comes again", "[rc][probe]") {
  ProbeScript s;
  s.post_recv(7, 3000);
  s.post(SendOpcode::Send, 1, 2500);
  const Packets request = s.take(s.a);
  s.give(s.b, request[0]);
  s.give(s.b, request[2]);
  CHECK(s.take(s.b) == Packets{s.nak(wire::NakCode::PsnSequenceError, kPsnA + 2, 1)});  // lost
  s.be_silent();
  s.carry_all();
  CHECK(s.a.poll_send() == Wcs{sent_ok(1)});
}

TEST_CASE("a read or an atomic whose response is lost is asked for again", "[rc][probe]") {
  const SendOpcode opcode = GENERATE(SendOpcode::Read, SendOpcode::FetchAdd);
  ProbeScript s;
  s.post(opcode, 1, 8);
  const Packets request = s.take(s.a);
  s.give_all(s.b, request);
  CHECK(s.take(s.b).size() == 1);  // lost
  s.be_silent();
  CHECK(s.take(s.a) == request);
  s.give_all(s.b, request);
  s.carry_all();
  CHECK(s.a.poll_send().size() == 1);
}

TEST_CASE("probes spend no retry: a silent peer is given up when it would be without them", "[rc][probe]") {
  ProbeScript s({.retry_cnt = 1});
  s.post(SendOpcode::Send, 1, 100);
  const auto start = s.now;
  Packets sent = s.take(s.a);
  while (s.a.engine().next_deadline()) {
    s.expire(s.a);
    const Packets more = s.take(s.a);
    sent.insert(sent.end(), more.begin(), more.end());
  }
  CHECK(s.a.poll_send() == Wcs{failed(1, WcStatus::RetryExcErr)});
  CHECK(s.now - start == 2 * queue::Duration(std::int64_t{4096} << 14));  // the ack timeout, twice
  CHECK(sent == Packets(sent.size(), sent[0]));
  CHECK(sent.size() == 2 + 7 + 1);  // 0.5, 1.5, 3.5, 7.5 ... and 63.5 ms into the first 67 ms, 64 ms into the second
}

TEST_CASE("while the receiver is waited for, and without an ack timeout, nothing is probed", "[rc][probe]") {
  ProbeScript s;
  s.post(SendOpcode::Send, 1, 100);
  s.give_all(s.b, s.take(s.a));
  s.give_all(s.a, s.take(s.b));  // RNR
  s.expire(s.a);
  CHECK(s.now == queue::Instant(std::chrono::seconds(1)) + std::chrono::microseconds(640));

  ProbeScript for_ever({.timeout = 0});
  for_ever.post(SendOpcode::Send, 1, 100);
  CHECK(for_ever.take(for_ever.a).size() == 1);
  CHECK(!for_ever.a.engine().next_deadline());
}

}  // namespace
}  // namespace nicless::sim
