// SPDX-License-Identifier: MIT
// Goal: a datagram service is resolved whatever is lost on the way, and says what the Linux kernel says. Method: both
// machines in virtual time, messages carried by hand; the kernel's captured messages.
#include "cm/sidr.h"

#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "cm/messages.h"
#include "cm/sidr_table.h"
#include "tests/cm/captured.h"
#include "wire/link.h"

namespace nicless::cm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::CmMessage;
using wire::CmSidrRep;
using wire::CmSidrReq;
using wire::SidrStatus;

constexpr std::uint64_t kTid = 0x700000005;
constexpr std::uint32_t kRequestId = 5;

CmSidrReq request() {
  CmSidrReq made = build_sidr_request(wire::PortSpace::Udp, {{}, 1000}, {{}, 7174}, {});
  made.request_id = kRequestId;
  return made;
}

CmSidrRep reply() {
  return build_sidr_reply(queue::Qpn(0x25), 0x01234567, {});
}

CmSidrRep nobody() {
  return {.request_id = kRequestId, .status = SidrStatus::InvalidServiceId, .service = request().service};
}

struct Asked {
  std::vector<Instant> at;  // when the question was sent
  std::optional<Resolution> resolution;
};

// Lets time pass without an answer, until nothing more will happen.
Asked run_alone(SidrRequester& requester) {
  Asked asked;
  Instant now{};
  for (;;) {
    while (requester.next_message()) asked.at.push_back(now);
    if ((asked.resolution = requester.next_event())) break;
    now = requester.next_deadline().value();
    requester.on_deadline(now);
  }
  CHECK_FALSE(requester.next_deadline().has_value());
  return asked;
}

TEST_CASE("question and answer are the kernel's", "[sidr][golden]") {
  const std::string name = GENERATE("udaddy", "udaddy-ipv6");
  CAPTURE(name);
  const auto messages = cm_messages(name);
  const auto asked = find<CmSidrReq>(messages);
  const auto answered = find<CmSidrRep>(messages);
  const wire::CmaHeader cma = asked.body().cma().value();
  CmSidrReq rebuilt = build_sidr_request(wire::PortSpace::Udp, {cma.source, cma.source_port},
                                         {cma.destination, wire::port_of(asked.body().service)}, {});
  rebuilt.request_id = asked.body().request_id;

  SidrRequester requester({}, asked.message.tid, rebuilt);
  CHECK(requester.next_message() == asked.message);
  SidrResponder responder(asked.message);
  REQUIRE(responder.answer({}, build_sidr_reply(answered.body().qpn, answered.body().qkey, {})).has_value());
  CHECK(responder.next_message() == answered.message);
  requester.on_reply({}, answered.body());
  CHECK(requester.next_event() == Resolution(Resolved{answered.body()}));
}

TEST_CASE("a question that nobody can answer, or that cannot be sent, ends at once", "[sidr]") {
  SidrRequester requester({}, kTid, request());
  SECTION("nobody can have the service: it is not sent") {
    requester.on_impossible_service();
    CHECK(requester.next_event() == Resolution(Resolved{nobody()}));
  }
  SECTION("this machine does not send there") {
    requester.on_unsendable(EACCES);
    CHECK(requester.next_event() == Resolution(Unresolved{-EACCES}));
  }
  CHECK(requester.next_message() == std::nullopt);
  CHECK_FALSE(requester.next_deadline().has_value());
}

TEST_CASE("a question without an answer is asked sixteen times, sooner at first, and then given up", "[sidr]") {
  SidrRequester requester({}, kTid, request());
  const Asked asked = run_alone(requester);
  CHECK(asked.resolution == Resolution(Unresolved{}));
  REQUIRE(asked.at.size() == 16);
  CHECK(asked.at[1] == Instant(milliseconds(200)));
  CHECK(asked.at[2] == Instant(milliseconds(600)));
  CHECK(asked.at[15] - asked.at[14] == SidrRequester::kLongestWait);
}

TEST_CASE("an answer to a later question counts, and those after it do not", "[sidr]") {
  SidrRequester requester({}, kTid, request());
  CHECK(requester.next_message() == CmMessage{kTid, request()});
  requester.on_deadline(Instant(milliseconds(200)));
  CHECK(requester.next_message() == CmMessage{kTid, request()});
  requester.on_reply(Instant(milliseconds(201)), reply());
  CHECK(requester.next_event() == Resolution(Resolved{reply()}));
  requester.on_reply(Instant(milliseconds(202)), nobody());
  requester.on_unreachable(Instant(milliseconds(203)));
  requester.on_deadline(Instant(seconds(100)));
  CHECK_FALSE(requester.next_event().has_value());
  CHECK_FALSE(requester.next_message().has_value());
  CHECK_FALSE(requester.next_deadline().has_value());
}

TEST_CASE("nobody listens, by a message or by the peer's host: asked again thrice before it is believed", "[sidr]") {
  const bool is_told = GENERATE(true, false);
  SidrRequester requester({}, kTid, request());
  CHECK(requester.next_message().has_value());
  is_told ? requester.on_reply({}, nobody()) : requester.on_unreachable({});
  CHECK_FALSE(requester.next_event().has_value());
  const Asked asked = run_alone(requester);
  CHECK(asked.resolution == Resolution(Resolved{nobody()}));
  CHECK(asked.at == std::vector{Instant(milliseconds(20)), Instant(milliseconds(100)), Instant(milliseconds(300))});
}

TEST_CASE("a service that opens again while it is asked for is found", "[sidr]") {
  SidrRequester requester({}, kTid, request());
  requester.on_unreachable({});
  requester.on_deadline(Instant(milliseconds(20)));
  requester.on_reply(Instant(milliseconds(21)), reply());
  CHECK(requester.next_event() == Resolution(Resolved{reply()}));
}

TEST_CASE("a refusal is told at once, with its status", "[sidr]") {
  SidrRequester requester({}, kTid, request());
  const CmSidrRep refusal = build_sidr_refusal(wire::PrivateData<3>{std::byte{'n'}, std::byte{'o'}});
  requester.on_reply({}, refusal);
  CHECK(requester.next_event() == Resolution(Resolved{refusal}));
  CHECK(refusal.status == SidrStatus::Rejected);
}

TEST_CASE("an answer is given once and repeated for as long as the question may come again", "[sidr]") {
  SidrResponder responder({kTid, request()});
  responder.on_request();
  CHECK_FALSE(responder.next_message().has_value());  // the program is still thinking
  CHECK_FALSE(responder.next_deadline().has_value());
  const Instant now(seconds(3));
  REQUIRE(responder.answer(now, reply()).has_value());
  CmSidrRep expected = reply();
  expected.request_id = kRequestId;
  expected.service = request().service;
  CHECK(responder.next_message() == CmMessage{kTid, expected});
  CHECK_FALSE(responder.next_message().has_value());
  CHECK(responder.answer(now, reply()).error().errno_value == EINVAL);
  responder.on_request();
  CHECK(responder.next_message() == CmMessage{kTid, expected});
  CHECK(responder.next_deadline() == now + SidrResponder::kAnswerKept);
}

// Both ends over two links; the program takes its time over each request, and there must be only one.
struct Exchange {
  explicit Exchange(const wire::LinkConfig& config) : to_service(config), to_asker(config) {}

  template <typename Machine>
  void drain(Machine& machine, wire::Link& link) {
    while (const auto message = machine.next_message()) {
      const auto bytes = wire::encode(*message);
      link.send(now, {{}, {}, {bytes.begin(), bytes.end()}});
    }
  }
  static CmMessage decode(const wire::LinkDatagram& datagram) {
    std::array<std::byte, CmMessage::kSize> bytes{};
    std::ranges::copy(datagram.bytes, bytes.begin());
    return wire::decode_cm(bytes).message;
  }
  void arrive(const CmMessage& message) {
    if (responder) return responder->on_request();
    responder.emplace(message);
    answer_at = now + milliseconds(300);
  }
  void run(SidrRequester& requester) {
    while (!resolution && now < Instant(seconds(300))) {
      drain(requester, to_service);
      if (responder) drain(*responder, to_asker);
      if ((resolution = requester.next_event())) return;
      auto next = queue::earliest(to_service.next_arrival(), to_asker.next_arrival());
      next = queue::earliest(queue::earliest(next, requester.next_deadline()), answer_at);
      now = std::max(now, next.value());
      while (const auto datagram = to_service.take(now)) arrive(decode(*datagram));
      while (const auto datagram = to_asker.take(now))
        requester.on_reply(now, std::get<CmSidrRep>(decode(*datagram).body));
      requester.on_deadline(now);
      if (answer_at && now >= *answer_at) {
        CHECK(responder->answer(now, reply()).has_value());
        answer_at.reset();
      }
    }
  }

  Instant now{};
  wire::Link to_service;
  wire::Link to_asker;
  std::optional<SidrResponder> responder;
  std::optional<Instant> answer_at;
  std::optional<Resolution> resolution;
};

TEST_CASE("whatever the network does, a service is found by one request", "[sidr][seeds]") {
  const auto seed = GENERATE(range(1, 200));
  CAPTURE(seed);
  Exchange exchange({.seed = static_cast<std::uint64_t>(seed),
                     .latency = milliseconds(1),
                     .jitter = milliseconds(3),
                     .loss = 0.3,
                     .duplicate = 0.3,
                     .reorder = 0.2,
                     .reorder_delay = milliseconds(500)});
  SidrRequester requester({}, kTid, request());
  exchange.run(requester);
  CmSidrRep expected = reply();
  expected.request_id = kRequestId;
  expected.service = request().service;
  CHECK(exchange.resolution == Resolution(Resolved{expected}));
}

TEST_CASE("the table knows questions by id and requests by id and asker, and what is due first", "[sidr]") {
  SidrTable table;
  const wire::Endpoint remote{wire::Gid{{std::byte{1}}}, 7174};
  const SidrTable::AnswerKey key{remote.address, kRequestId};
  table.ask(kRequestId, {SidrRequester({}, kTid, request()), {nullptr, {}, remote, 0}, nullptr});
  table.ask(6, {SidrRequester(Instant(seconds(1)), kTid, request()), {nullptr, {}, {}, 0}, nullptr});
  SidrAnswer& answer = table.take(key, {SidrResponder({kTid, request()}), {nullptr, {}, remote, 0}, nullptr});
  CHECK(table.find(7) == nullptr);
  CHECK(table.find(SidrTable::AnswerKey{{}, kRequestId}) == nullptr);
  CHECK(table.find(key) == &answer);
  CHECK(table.asked(remote) == std::vector<SidrTable::RequestId>{kRequestId});
  CHECK(table.next_deadline() == Instant(milliseconds(200)));
  CHECK(table.due_question(Instant(milliseconds(199))) == std::nullopt);
  CHECK(table.due_question(Instant(seconds(2))) == kRequestId);
  table.erase(kRequestId);
  CHECK(table.due_question(Instant(seconds(2))) == 6U);
  table.erase(6);
  CHECK(table.next_deadline() == std::nullopt);

  REQUIRE(answer.responder.answer({}, reply()).has_value());
  table.refresh(key);
  CHECK(table.due_answer(Instant(SidrResponder::kAnswerKept)) == key);
  table.erase(key);
  CHECK(table.find(key) == nullptr);
  CHECK(table.next_deadline() == std::nullopt);
}

TEST_CASE("given answers are kept up to a limit, the oldest is forgotten first, and none that is still to be given",
          "[sidr]") {
  SidrTable table;
  const auto key = [](std::size_t n) { return SidrTable::AnswerKey{{}, static_cast<std::uint32_t>(n)}; };
  const auto take = [&](std::size_t n) {
    return &table.take(key(n), {SidrResponder({kTid, request()}), {nullptr, {}, {}, 0}, nullptr});
  };
  take(0);  // not given
  for (std::size_t n = 1; n <= SidrTable::kAnswersMax; ++n) {
    REQUIRE(take(n)->responder.answer(Instant(milliseconds(n)), reply()).has_value());
    table.refresh(key(n));
  }
  CHECK(table.find(key(0)) != nullptr);
  CHECK(table.find(key(1)) == nullptr);
  CHECK(table.find(key(2)) != nullptr);
  CHECK(table.find(key(SidrTable::kAnswersMax)) != nullptr);
}

}  // namespace
}  // namespace nicless::cm::test
