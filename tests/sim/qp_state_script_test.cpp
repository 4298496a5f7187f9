// SPDX-License-Identifier: MIT
// Goal: a queue pair in SQD finishes what it began and begins nothing, one in SQE still receives, and one whose CQ is
// overrun is done; each event is raised when IBTA 10.3 and 11.6.3 say, and once. Method: two queue pairs, packets
// carried by hand; after each step the packets, the completions and the events are compared.
#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using queue::AsyncType;
using queue::SendOpcode;
using queue::WcStatus;
using wire::QpState;
using wire::Transport;

constexpr auto kNotify = wire::attr_mask::kEnSqdAsyncNotify;
using Events = std::vector<AsyncType>;

constexpr std::size_t kDatagram = 256;

SideConfig side_of(Transport transport) {
  SideConfig config;
  config.transport = transport;
  return config;
}

struct StateScript : Script {
  explicit StateScript(Transport transport = Transport::Rc) : Script({}, side_of(transport)) {}
  explicit StateScript(const SideConfig& side) : Script({}, side) {}

  // A message of one packet, to whatever the other end is.
  queue::Wqe message(std::uint64_t wr_id, std::size_t length = kDatagram) {
    queue::Wqe wqe = request(SendOpcode::Send, wr_id, length);
    wqe.datagram.local_gid = a.endpoint().address.bytes;
    wqe.datagram.remote_gid = b.endpoint().address.bytes;
    wqe.datagram.remote_qpn = b.qpn();
    wqe.datagram.remote_qkey = ConnectionConfig{}.qkey;
    return wqe;
  }
  void send(std::uint64_t wr_id, std::size_t length = kDatagram) { REQUIRE(a.post_send(now, message(wr_id, length))); }
  // One that cannot be sent: its lkey is none.
  void send_faulty(std::uint64_t wr_id) {
    queue::Wqe wqe = message(wr_id);
    sge.lkey = queue::LKey(0xbad);
    REQUIRE(a.post_send(now, wqe));
  }
  void to(Side& side, QpState state, std::uint32_t more = 0) { REQUIRE(side.to_state(now, state, more)); }
};

Transport any_transport() {
  return GENERATE(Transport::Rc, Transport::Uc, Transport::Ud);
}

TEST_CASE("in SQD what was begun is finished, nothing is begun, and RTS goes on", "[sim][sqd]") {
  StateScript s;
  s.post_recv(1, 3 * kMtu);
  s.post_recv(2, kMtu, 4 * kMtu);
  s.send(11, 3 * kMtu);
  const auto begun = s.take(s.a);
  REQUIRE(begun.size() == 3);

  s.to(s.a, QpState::Sqd, kNotify);
  s.send(12, kMtu);
  CHECK(s.take(s.a).empty());
  CHECK(s.a.qp().attributes().sq_draining);
  CHECK(events_of(s.a) == Events{});

  s.give_all(s.b, begun);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(11)});
  CHECK_FALSE(s.a.qp().attributes().sq_draining);
  CHECK(events_of(s.a) == Events{AsyncType::SqDrained});
  CHECK(s.take(s.a).empty());

  s.to(s.a, QpState::Rts);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(12)});
  CHECK(s.b.poll_recv() == std::vector<Wc>{received(1, 3 * kMtu), received(2, kMtu)});
  CHECK(events_of(s.a) == Events{});
  CHECK(s.is_at_rest());
}

TEST_CASE("in SQD what was lost is sent again", "[sim][sqd]") {
  StateScript s;
  s.post_recv(1, kMtu);
  s.send(11, kMtu);
  const auto lost = s.take(s.a);
  s.to(s.a, QpState::Sqd, kNotify);
  s.expire(s.a);
  CHECK(s.take(s.a) == lost);
  s.give_all(s.b, lost);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(11)});
  CHECK(events_of(s.a) == Events{AsyncType::SqDrained});
}

TEST_CASE("a send queue with nothing under way is drained at once", "[sim][sqd]") {
  StateScript s(any_transport());
  s.to(s.a, QpState::Sqd, kNotify);
  CHECK_FALSE(s.a.qp().attributes().sq_draining);
  CHECK(events_of(s.a) == Events{AsyncType::SqDrained});
}

TEST_CASE("SQ_DRAINED is not raised for a program that did not ask for it", "[sim][sqd]") {
  StateScript s(any_transport());
  SECTION("without the mask's bit") {
    s.to(s.a, QpState::Sqd);
  }
  SECTION("with en_sqd_async_notify 0") {
    wire::QpAttributes attributes;
    attributes.state = QpState::Sqd;
    REQUIRE(s.a.qp().modify(s.now, attributes, wire::attr_mask::kState | kNotify));
  }
  s.carry_all();
  CHECK(events_of(s.a) == Events{});
}

TEST_CASE("an unreliable send queue is drained when what was handed out has left", "[sim][sqd]") {
  StateScript s(GENERATE(Transport::Uc, Transport::Ud));
  s.send(11);
  wire::OutDatagram out;
  REQUIRE(s.a.engine().next_datagram(s.now, out));  // and is still on its way to the kernel
  s.to(s.a, QpState::Sqd, kNotify);
  s.send(12);
  wire::OutDatagram none;
  CHECK_FALSE(s.a.engine().next_datagram(s.now, none));
  CHECK(s.a.qp().attributes().sq_draining);
  CHECK(events_of(s.a) == Events{});
  s.a.engine().on_sent();
  CHECK(events_of(s.a) == Events{AsyncType::SqDrained});
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(11)});

  s.to(s.a, QpState::Rts);
  CHECK(s.take(s.a).size() == 1);
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(12)});
}

TEST_CASE("an unreliable connection in SQD finishes the message that it is in the middle of", "[sim][sqd]") {
  StateScript s(Transport::Uc);
  s.send(11, 3 * kMtu);
  wire::OutDatagram first;
  REQUIRE(s.a.engine().next_datagram(s.now, first));
  s.a.engine().on_sent();
  s.to(s.a, QpState::Sqd, kNotify);
  CHECK(events_of(s.a) == Events{});
  CHECK(s.take(s.a).size() == 2);
  CHECK(events_of(s.a) == Events{AsyncType::SqDrained});
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(11)});
}

TEST_CASE("a queue pair in SQD answers its peer", "[sim][sqd]") {
  StateScript s;
  s.to(s.b, QpState::Sqd);
  s.post_recv(1, kMtu);
  s.send(11, kMtu);
  s.carry_all();
  CHECK(s.b.poll_recv() == std::vector<Wc>{received(1, kMtu)});
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(11)});
}

TEST_CASE("attributes that change in SQD hold from RTS on", "[sim][sqd]") {
  StateScript s;
  s.to(s.a, QpState::Sqd);
  wire::QpAttributes attributes;
  attributes.timeout = 0;  // none
  attributes.max_dest_rd_atomic = 1;
  REQUIRE(s.a.qp().modify(s.now, attributes, wire::attr_mask::kTimeout | wire::attr_mask::kMaxDestRdAtomic));
  CHECK(s.a.qp().state() == QpState::Sqd);
  s.to(s.a, QpState::Rts);
  s.send(11);
  CHECK(s.take(s.a).size() == 1);
  CHECK_FALSE(s.a.engine().next_deadline().has_value());
  CHECK(s.a.qp().attributes().max_dest_rd_atomic == 1);
}

TEST_CASE("a responder whose max_dest_rd_atomic grew in SQD still answers the reads of before", "[sim][sqd]") {
  ConnectionConfig connection;
  connection.max_dest_rd_atomic = 1;
  Script s(connection);
  s.post(SendOpcode::Read, 11, kMtu);
  const auto request = s.take(s.a);
  s.give_all(s.b, request);
  const auto response = s.take(s.b);
  REQUIRE(response.size() == 1);
  REQUIRE(s.b.to_state(s.now, QpState::Sqd));
  wire::QpAttributes attributes;
  attributes.max_dest_rd_atomic = 4;
  REQUIRE(s.b.qp().modify(s.now, attributes, wire::attr_mask::kMaxDestRdAtomic));
  REQUIRE(s.b.to_state(s.now, QpState::Rts));
  s.give_all(s.b, request);
  CHECK(s.take(s.b) == response);
}

TEST_CASE("a fault of an unreliable sender's own ends in SQE: the first keeps its status, the rest is flushed",
          "[sqe]") {
  StateScript s(GENERATE(Transport::Uc, Transport::Ud));
  s.send(11);
  s.send_faulty(12);
  s.send(13);
  s.carry_all();
  CHECK(s.a.qp().state() == QpState::Sqe);
  CHECK(s.a.poll_send() ==
        std::vector<Wc>{sent_ok(11), failed(12, WcStatus::LocProtErr), failed(13, WcStatus::WrFlushErr)});
  CHECK(events_of(s.a) == Events{});

  s.send(14);  // flushed as it is posted
  CHECK(s.take(s.a).empty());
  CHECK(s.a.poll_send() == std::vector<Wc>{failed(14, WcStatus::WrFlushErr)});

  s.to(s.a, QpState::Rts);
  s.send(15);
  CHECK(s.take(s.a).size() == 1);
  CHECK(s.a.poll_send() == std::vector<Wc>{sent_ok(15)});
}

TEST_CASE("a queue pair in SQE receives", "[sqe]") {
  StateScript s(Transport::Uc);
  s.send_faulty(11);
  s.carry_all();
  REQUIRE(s.a.qp().state() == QpState::Sqe);
  const queue::Sge list = s.source.sge(0, kMtu);
  REQUIRE(s.a.post_recv(1, {&list, 1}));
  queue::Wqe wqe;
  wqe.wr_id = 21;
  const queue::Sge from = s.target.sge(0, 100);
  wqe.sges = {&from, 1};
  REQUIRE(s.b.post_send(s.now, wqe));
  for (const Packet& packet : s.take(s.b)) s.give(s.a, packet);
  CHECK(s.a.poll_recv() == std::vector<Wc>{received(1, 100)});
}

TEST_CASE("a reliable connection never stands in SQE: its own fault ends in ERR", "[sqe]") {
  StateScript s;
  s.send_faulty(11);
  s.send(12);
  s.carry_all();
  CHECK(s.a.qp().state() == QpState::Err);
  CHECK(s.a.poll_send() == std::vector<Wc>{failed(11, WcStatus::LocProtErr), failed(12, WcStatus::WrFlushErr)});
  CHECK(events_of(s.a) == Events{});
}

TEST_CASE("a queue pair whose send CQ is overrun goes to ERR: CQ_ERR, then QP_FATAL, each once", "[overrun]") {
  SideConfig config;
  config.cq_entries = 2;
  Script s({}, config);
  for (std::uint64_t wr_id = 11; wr_id <= 13; ++wr_id) s.post(SendOpcode::Write, wr_id, 8);
  s.carry_all();
  CHECK(events_of(s.a) == Events{AsyncType::CqErr, AsyncType::QpFatal});
  CHECK(s.a.qp().state() == QpState::Err);
  s.post(SendOpcode::Write, 14, 8);  // flushed into the void
  CHECK(s.take(s.a).empty());
  CHECK(events_of(s.a) == Events{});
  CHECK(s.a.qp().take_reasons().size() == 1);
  CHECK(s.b.qp().state() == QpState::Rts);
}

TEST_CASE("a queue pair whose receive CQ is overrun goes to ERR as well, of any transport", "[overrun]") {
  SideConfig config = side_of(any_transport());
  config.cq_entries = 1;
  StateScript s(config);
  for (std::uint64_t wr_id = 1; wr_id <= 2; ++wr_id) s.post_recv(wr_id, kMtu);
  for (std::uint64_t wr_id = 11; wr_id <= 12; ++wr_id) {
    queue::Wqe wqe = s.message(wr_id);
    wqe.signaled = false;
    REQUIRE(s.a.post_send(s.now, wqe));
  }
  s.carry_all();
  CHECK(events_of(s.b) == Events{AsyncType::CqErr, AsyncType::QpFatal});
  CHECK(s.b.qp().state() == QpState::Err);
}

TEST_CASE("a queue pair that is reset while its CQ is overrun fails anew, with its next completion", "[overrun]") {
  SideConfig config;
  config.cq_entries = 1;
  Script s({}, config);
  for (std::uint64_t wr_id = 11; wr_id <= 12; ++wr_id) s.post(SendOpcode::Write, wr_id, 8);
  s.carry_all();
  REQUIRE(events_of(s.a) == Events{AsyncType::CqErr, AsyncType::QpFatal});
  REQUIRE(s.a.to_state(s.now, QpState::Reset));
  s.a.connect(s.now, s.b, {}, kPsnA, kPsnB);
  CHECK(s.a.qp().state() == QpState::Rts);
  CHECK(events_of(s.a) == Events{});
  REQUIRE(s.b.to_state(s.now, QpState::Reset));
  s.b.connect(s.now, s.a, {}, kPsnB, kPsnA);
  s.post(SendOpcode::Write, 13, 8);
  s.carry_all();
  CHECK(s.a.qp().state() == QpState::Err);
  CHECK(events_of(s.a) == Events{AsyncType::QpFatal});
}

TEST_CASE("COMM_EST comes with the peer's first packet to a queue pair in RTR, and once", "[comm_est]") {
  const Transport service = GENERATE(Transport::Rc, Transport::Uc);
  StateScript s(service);
  REQUIRE(s.b.to_state(s.now, QpState::Reset));
  s.b.connect_to_rtr(s.now, s.a, {}, kPsnA);
  CHECK(events_of(s.b) == Events{});
  s.post_recv(1, kMtu);
  s.post_recv(2, kMtu);
  s.send(11);
  s.send(12);
  s.carry_all();
  CHECK(events_of(s.b) == Events{AsyncType::CommEst});
  CHECK(s.b.qp().state() == QpState::Rtr);
}

}  // namespace
}  // namespace nicless::sim
