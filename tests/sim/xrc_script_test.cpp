// SPDX-License-Identifier: MIT
// Goal: an XRC initiator and an XRC target are a reliable connection that runs one way, and each message goes to the
// SRQ that its packets name: whose lists, whose completion queue, whose protection domain. Method: exact scripts,
// packets carried by hand; two SRQs in the target's domain and one in another.
#include <catch2/catch.hpp>

#include "tests/sim/script.h"

namespace nicless::sim {
namespace {

using Op = wire::Op;
using queue::SendOpcode;
using queue::Srqn;
using queue::WcStatus;

constexpr Srqn kSrqn{0x8f1203};
constexpr Srqn kOtherSrqn{0x8f1204};
constexpr Srqn kSmallSrqn{0x8f1205};
constexpr Srqn kUnknownSrqn{0x000001};

struct Domain {
  queue::XrcDomain domain;
};

struct XrcScript : Domain, ExactPair {
  XrcScript()
      : ExactPair({.transport = wire::Transport::XrcInitiator},
                  {.transport = wire::Transport::XrcTarget, .xrc_domain = &domain}, {}) {
    domain.add(kSrqn, {&srq, &b.recv_cq(), &b.regions(), b.pd()});
    domain.add(kOtherSrqn, {&other_srq, &other_cq, &b.regions(), other_pd});
    domain.add(kSmallSrqn, {&small_srq, &small_cq, &b.regions(), other_pd});
    std::iota(reinterpret_cast<unsigned char*>(source.bytes().data()),
              reinterpret_cast<unsigned char*>(source.bytes().data() + kMemoryBytes), static_cast<unsigned char>(3));
  }

  queue::Wqe request(SendOpcode opcode, std::uint64_t wr_id, std::size_t length, Srqn srqn = kSrqn) {
    queue::Wqe wqe;
    wqe.wr_id = wr_id;
    wqe.opcode = opcode;
    wqe.remote_addr = target.address();
    wqe.rkey = target.rkey();
    wqe.imm_or_key = 0x04030201;
    wqe.remote_srqn = srqn;
    sge = source.sge(0, length);
    if (length > 0) wqe.sges = {&sge, 1};
    return wqe;
  }
  void post(SendOpcode opcode, std::uint64_t wr_id, std::size_t length, Srqn srqn = kSrqn) {
    REQUIRE(a.post_send(now, request(opcode, wr_id, length, srqn)));
  }
  void post_recv(std::uint64_t wr_id, std::size_t length) {
    const queue::Sge list = target.sge(0, length);
    REQUIRE(srq.post(wr_id, std::span(&list, 1)));
  }
  Packet from_a(Op op, std::uint32_t psn, std::size_t offset, std::size_t length, bool wants_ack) {
    Packet packet = make_packet(op, b.qpn(), psn, source.bytes().subspan(offset, length));
    packet.headers.bth.opcode = wire::opcode_of(wire::Service::Xrc, op);
    packet.headers.bth.ack_req = wants_ack;
    packet.headers.xrc.srqn = kSrqn;
    return packet;
  }
  Packet from_b(std::uint32_t psn, wire::Aeth aeth) {
    Packet packet = make_ack(a.qpn(), psn, aeth);
    packet.headers.bth.opcode = wire::opcode_of(wire::Service::Xrc, Op::Acknowledge);
    return packet;
  }
  void give_all(Side& to, const std::vector<Packet>& packets) {
    for (const Packet& packet : packets) give(to, packet);
  }
  // One message of three packets, of which the first two have arrived.
  void half_arrive() {
    post(SendOpcode::Send, 1, 3 * kMtu);
    std::vector<Packet> packets = take(a);
    packets.pop_back();
    give_all(b, packets);
    take(b);
  }
  bool arrived(std::size_t length) {
    return std::equal(target.bytes().begin(), target.bytes().begin() + static_cast<std::ptrdiff_t>(length),
                      source.bytes().begin());
  }
  std::vector<queue::AsyncType> events(Side& side) {
    std::vector<queue::AsyncType> types;
    while (const auto event = side.async_events().take()) types.push_back(event->type);
    return types;
  }

  const queue::PdId other_pd{7};
  queue::SharedReceiveQueue srq{4, 4, b.async_events(), &srq};
  queue::SharedReceiveQueue other_srq{4, 4, b.async_events(), &other_srq};
  queue::CompletionQueue other_cq{16, nullptr, b.async_events(), &other_cq};
  queue::SharedReceiveQueue small_srq{4, 4, b.async_events(), &small_srq};
  queue::CompletionQueue small_cq{1, nullptr, b.async_events(), &small_cq};
  Buffer source = a.make_buffer(kMemoryBytes);
  Buffer target = b.make_buffer(kMemoryBytes);
  queue::Sge sge;
};

TEST_CASE("a message names the SRQ in every packet, and is acknowledged to the initiator", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 4 * kMtu);
  s.post(SendOpcode::SendImm, 1, 2 * kMtu + 10);
  const auto sent = s.take(s.a);
  Packet last = s.from_a(Op::SendLastImm, kPsnA + 2, 2 * kMtu, 10, true);
  last.headers.imm.network_order = 0x04030201;
  CHECK(sent == std::vector{s.from_a(Op::SendFirst, kPsnA, 0, kMtu, false),
                            s.from_a(Op::SendMiddle, kPsnA + 1, kMtu, kMtu, false), last});
  s.give_all(s.b, sent);
  const auto answered = s.take(s.b);
  CHECK(answered == std::vector{s.from_b(kPsnA + 2, wire::Aeth::ack(1))});
  s.give_all(s.a, answered);
  CHECK(s.a.poll_send() == std::vector{sent_ok(1)});
  CHECK(s.b.poll_recv() == std::vector{received_imm(5, 2 * kMtu + 10)});
  CHECK(s.arrived(2 * kMtu + 10));
}

TEST_CASE("a target whose completion the CQ of an SRQ could not take goes to ERR: CQ_ERR, then QP_FATAL",
          "[xrc][overrun]") {
  XrcScript s;
  Buffer landing(s.b.regions(), s.other_pd, 64, queue::kAccessLocalWrite);
  const queue::Sge list = landing.sge(0, 64);
  for (std::uint64_t wr_id = 6; wr_id <= 7; ++wr_id) REQUIRE(s.small_srq.post(wr_id, std::span(&list, 1)));
  s.post(SendOpcode::Send, 1, 20, kSmallSrqn);
  s.post(SendOpcode::Send, 2, 20, kSmallSrqn);
  s.carry_all();
  const auto events = s.events(s.b);
  CHECK(std::count(events.begin(), events.end(), queue::AsyncType::CqErr) == 1);
  CHECK(std::count(events.begin(), events.end(), queue::AsyncType::QpFatal) == 1);
  CHECK(s.b.qp().state() == wire::QpState::Err);
}

TEST_CASE("each SRQ of a domain has its own lists and its own completion queue", "[xrc]") {
  XrcScript s;
  Buffer landing(s.b.regions(), s.other_pd, 64, queue::kAccessLocalWrite);
  const queue::Sge list = landing.sge(0, 64);
  REQUIRE(s.other_srq.post(6, std::span(&list, 1)));
  s.post_recv(5, 64);
  s.post(SendOpcode::Send, 1, 20, kOtherSrqn);
  s.post(SendOpcode::Send, 2, 30);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{sent_ok(1), sent_ok(2)});
  CHECK(s.b.poll_recv() == std::vector{received(5, 30)});
  ibv_wc wc{};
  REQUIRE(s.other_cq.poll(std::span(&wc, 1)) == 1);
  CHECK(wc.wr_id == 6);
  CHECK(wc.byte_len == 20);
  CHECK(wc.qp_num == s.b.qpn().value());
  CHECK(wc.src_qp == s.a.qpn().value());
}

TEST_CASE("writes, reads and atomics go by the protection domain of the SRQ that they name", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 0);
  s.post(SendOpcode::WriteImm, 1, 2 * kMtu);
  s.carry_all();
  CHECK(s.arrived(2 * kMtu));
  CHECK(s.b.poll_recv() == std::vector{received_imm(5, 2 * kMtu, queue::WcOpcode::RecvRdmaWithImm)});
  s.post(SendOpcode::Read, 2, 3 * kMtu);
  s.post(SendOpcode::FetchAdd, 3, 8);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{sent_ok(1, queue::WcOpcode::RdmaWrite), read_ok(2, 3 * kMtu),
                                       Wc{.wr_id = 3, .opcode = queue::WcOpcode::FetchAdd, .byte_len = 8}});

  s.post(SendOpcode::Write, 4, 8, kOtherSrqn);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{failed(4, WcStatus::RemAccessErr)});
}

TEST_CASE("an SRQ that the domain does not have is an invalid request, whatever the operation", "[xrc]") {
  const auto opcode = GENERATE(SendOpcode::Send, SendOpcode::Write, SendOpcode::Read, SendOpcode::FetchAdd);
  XrcScript s;
  s.post(opcode, 1, 8, kUnknownSrqn);
  s.give_all(s.b, s.take(s.a));
  const auto answered = s.take(s.b);
  CHECK(answered == std::vector{s.from_b(kPsnA, wire::Aeth::nak(wire::NakCode::InvalidRequest, 0))});
  s.give_all(s.a, answered);
  CHECK(s.a.poll_send() == std::vector{failed(1, WcStatus::RemInvReqErr)});
  CHECK(s.b.qp().state() == wire::QpState::Err);
  CHECK(s.events(s.b) == std::vector{queue::AsyncType::QpReqErr, queue::AsyncType::QpLastWqeReached});
  CHECK(s.events(s.a).empty());
  const auto reasons = s.a.qp().take_reasons();
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].find("remote_srqn 0x1 is none of its XRC domain's SRQs") != std::string::npos);
}

TEST_CASE("a message goes on to the SRQ it began with", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 4 * kMtu);
  s.post(SendOpcode::Send, 1, 2 * kMtu);
  auto packets = s.take(s.a);
  packets[1].headers.xrc.srqn = kOtherSrqn;
  s.give_all(s.b, packets);
  CHECK(s.take(s.b) == std::vector{s.from_b(kPsnA + 1, wire::Aeth::nak(wire::NakCode::InvalidRequest, 0))});
  CHECK(s.b.poll_recv() == std::vector{failed(5, WcStatus::WrFlushErr)});
}

TEST_CASE("a message whose SRQ is destroyed on the way is refused, and its list is lost", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 4 * kMtu);
  s.half_arrive();
  s.domain.remove(kSrqn);
  s.give(s.b, s.from_a(Op::SendLast, kPsnA + 2, 2 * kMtu, kMtu, true));
  CHECK(s.take(s.b) == std::vector{s.from_b(kPsnA + 2, wire::Aeth::nak(wire::NakCode::InvalidRequest, 0))});
  CHECK(s.b.poll_recv().empty());
}

TEST_CASE("a read whose SRQ is destroyed before it is answered ends as if the region had gone", "[xrc]") {
  XrcScript s;
  s.post(SendOpcode::Read, 1, kMtu);
  s.give_all(s.b, s.take(s.a));
  s.domain.remove(kSrqn);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{failed(1, WcStatus::RemAccessErr)});
}

TEST_CASE("a target in ERR flushes the list that a half-arrived message had taken, and leaves the SRQ alone", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 4 * kMtu);
  s.post_recv(6, 4 * kMtu);
  s.half_arrive();
  REQUIRE(s.b.to_state(s.now, wire::QpState::Err));
  CHECK(s.b.poll_recv() == std::vector{failed(5, WcStatus::WrFlushErr)});
  CHECK(s.events(s.b).back() == queue::AsyncType::QpLastWqeReached);
  s.give(s.b, s.from_a(Op::SendLast, kPsnA + 2, 2 * kMtu, kMtu, true));
  CHECK(s.take(s.b).empty());
  CHECK(s.b.qp().counters().wrong_state == 1);
  queue::RecvWqe next;
  REQUIRE(s.srq.take(next));
  CHECK(next.wr_id == 6);
}

TEST_CASE("a target that is reset gives the SRQ the room back that a half-arrived message had taken", "[xrc]") {
  XrcScript s;
  for (std::uint64_t i = 0; i < 4; ++i) s.post_recv(i, 4 * kMtu);
  s.half_arrive();
  CHECK(errno_of(s.srq.post(9, {})) == ENOMEM);
  REQUIRE(s.b.to_state(s.now, wire::QpState::Reset));
  CHECK(s.b.poll_recv().empty());
  CHECK(errno_of(s.srq.post(9, {})) == 0);
  CHECK(errno_of(s.srq.post(9, {})) == ENOMEM);
}

TEST_CASE("an empty SRQ answers RNR, and the message comes again", "[xrc]") {
  XrcScript s;
  s.post(SendOpcode::Send, 1, 20);
  s.give_all(s.b, s.take(s.a));
  const auto rnr = s.take(s.b);
  CHECK(rnr == std::vector{s.from_b(kPsnA, wire::Aeth::rnr(12, 0))});
  s.give_all(s.a, rnr);
  s.post_recv(5, 64);
  s.expire(s.a);
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{sent_ok(1)});
  CHECK(s.b.poll_recv() == std::vector{received(5, 20)});
}

TEST_CASE("lost and doubled packets of an XRC message are made good like those of any reliable connection", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 4 * kMtu);
  s.post(SendOpcode::Send, 1, 3 * kMtu);
  const auto packets = s.take(s.a);
  s.give(s.b, packets[0]);
  s.give(s.b, packets[0]);
  s.give(s.b, packets[2]);  // the one between is lost
  s.carry_all();
  CHECK(s.a.poll_send() == std::vector{sent_ok(1)});
  CHECK(s.b.poll_recv() == std::vector{received(5, 3 * kMtu)});
  CHECK(s.arrived(3 * kMtu));

  s.post(SendOpcode::Read, 2, kMtu);
  const auto read = s.take(s.a);
  s.give_all(s.b, read);
  const auto response = s.take(s.b);
  s.give_all(s.b, read);
  CHECK(s.take(s.b) == response);
  s.give_all(s.a, response);
  CHECK(s.a.poll_send() == std::vector{read_ok(2, kMtu)});
}

TEST_CASE("a lost last packet goes out again after some silence, as the XRC packet that it was", "[xrc][probe]") {
  XrcScript s;
  s.post_recv(5, 64);
  s.post_recv(6, 4 * kMtu);
  s.post(SendOpcode::Send, 1, 8);
  s.carry_all();  // a round trip is known now
  s.post(SendOpcode::Send, 2, 2 * kMtu);
  const auto packets = s.take(s.a);
  s.give(s.b, packets[0]);
  s.expire(s.a);
  CHECK(s.take(s.a) == std::vector{packets[1]});
}

TEST_CASE("each end drops what only the other could take, and packets of plain RC", "[xrc]") {
  XrcScript s;
  s.post_recv(5, 64);
  Packet request = s.from_a(Op::SendOnly, kPsnB, 0, 8, true);
  request.headers.bth.dest_qp = s.a.qpn();
  s.give(s.a, request);
  Packet response = s.from_b(kPsnA, wire::Aeth::ack(1));
  response.headers.bth.dest_qp = s.b.qpn();
  s.give(s.b, response);
  s.give(s.b, make_packet(Op::SendOnly, s.b.qpn(), kPsnA, s.source.bytes().first(8)));
  CHECK(s.a.qp().counters().wrong_service == 1);
  CHECK(s.b.qp().counters().wrong_service == 2);
  CHECK(s.take(s.a).empty());
  CHECK(s.take(s.b).empty());
  CHECK(s.b.poll_recv().empty());
}

TEST_CASE("a target takes no sends, and says where they go", "[xrc]") {
  XrcScript s;
  const auto refused = s.b.qp().check_post_send(s.request(SendOpcode::Send, 1, 8));
  CHECK(errno_of(refused) == ENOMEM);
  CHECK(refused.error().why == "an XRC target (IBV_QPT_XRC_RECV) only receives; post on one of type IBV_QPT_XRC_SEND");
}

TEST_CASE("an initiator in ERR flushes its sends and has no last receive to tell of", "[xrc]") {
  XrcScript s;
  s.post(SendOpcode::Send, 1, 8);
  REQUIRE(s.a.to_state(s.now, wire::QpState::Err));
  CHECK(s.a.poll_send() == std::vector{failed(1, WcStatus::WrFlushErr)});
  CHECK(s.events(s.a).empty());
}

}  // namespace
}  // namespace nicless::sim
