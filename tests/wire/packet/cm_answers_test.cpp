// SPDX-License-Identifier: MIT
// Goal: messages that belong to no connection are answered as the Linux kernel answers them, and those that want no
// answer get none. Method: the kernel's captured questions go in; what comes out is compared whole with what it
// answered.
#include "wire/packet/cm_answers.h"

#include <catch2/catch.hpp>

#include "tests/support/golden.h"
#include "wire/packet/packet.h"

namespace nicless::wire {
namespace {

// The first message of that kind in the capture.
template <typename Body>
CmMessage captured(const std::string& name) {
  for (const test::GoldenPacket& packet : test::golden_packets(name)) {
    const Decoded decoded = decode(packet.bytes);
    if (!decoded || decoded.packet.payload.size() != CmMessage::kSize) continue;
    const DecodedCm cm = decode_cm(decoded.packet.payload.first<CmMessage::kSize>());
    if (cm && std::holds_alternative<Body>(cm.message.body)) return cm.message;
  }
  FAIL("no such message in " << name);
  return {};
}

TEST_CASE("a request where nobody listens is refused", "[packet][cm]") {
  const std::string name = GENERATE("rej-no-listener", "rej-no-listener-ipv6");
  CAPTURE(name);
  const CmMessage req = captured<CmReq>(name);
  CHECK(refusal(req, RejReason::InvalidServiceId) == captured<CmRej>(name));
  CHECK(answer_of_nobody(req) == captured<CmRej>(name));
}

TEST_CASE("a datagram service that nobody offers is answered so", "[packet][cm]") {
  CHECK(answer_of_nobody(captured<CmSidrReq>("sidr-no-listener")) == captured<CmSidrRep>("sidr-no-listener"));
}

TEST_CASE("a release of a connection that is gone is confirmed", "[packet][cm]") {
  CHECK(answer_of_nobody(captured<CmDreq>("rping-C2")) == captured<CmDrep>("rping-C2"));
}

TEST_CASE("answers are not answered, but for the reply and the RTU of a connection that is not there", "[packet][cm]") {
  CHECK_FALSE(answer_of_nobody(captured<CmDrep>("rping-C2")));
  CHECK_FALSE(answer_of_nobody(captured<CmRej>("rej-consumer")));
  CHECK_FALSE(answer_of_nobody(captured<CmMra>("cm-slow-accept")));
  CHECK_FALSE(answer_of_nobody(captured<CmSidrRep>("udaddy")));
  const CmMessage rep = captured<CmRep>("rping-C2");
  const CmRep& body = std::get<CmRep>(rep.body);
  CHECK(answer_of_nobody(rep) == CmMessage{rep.tid, CmRej{.local_id = body.remote_id,
                                                          .remote_id = body.local_id,
                                                          .answered = CmAnswered::Rep,
                                                          .reason = RejReason::InvalidCommId}});
  const CmMessage rtu = captured<CmRtu>("rping-C2");
  CHECK(answer_of_nobody(rtu) == CmMessage{rtu.tid, CmRej{.local_id = std::get<CmRtu>(rtu.body).remote_id,
                                                          .remote_id = std::get<CmRtu>(rtu.body).local_id,
                                                          .answered = CmAnswered::Other,
                                                          .reason = RejReason::InvalidCommId}});
}

}  // namespace
}  // namespace nicless::wire
