// SPDX-License-Identifier: MIT
// Goal: one line tells a person what a CM message says. Method: the line of a message with private data, and for every
// kind of message that it prints its name and ids.
#include <catch2/catch.hpp>

#include "tests/support/bytes.h"
#include "wire/packet/print.h"

using namespace nicless;
using namespace nicless::wire;

TEST_CASE("a REQ prints who asks whom for which service, with the program's data", "[packet][print]") {
  CmReq req;
  req.local_id = CommId(0x9a1fd622);
  req.service = service_id(PortSpace::Tcp, 7174);
  req.local_qpn = queue::Qpn(0x20);
  req.starting_psn = Psn(0x2284da);
  req.path_mtu = 3;
  req.primary.local_gid = test::ipv4(10, 77, 0, 2);
  req.primary.remote_gid = test::ipv4(10, 77, 0, 1);
  req.set_private_data({4, 57670, test::ipv4(10, 77, 0, 2), test::ipv4(10, 77, 0, 1)}, test::bytes_of("cafe00"));
  CHECK(to_string(CmMessage{0x222d61f9a, req}) ==
        "CM REQ tid=0000000222d61f9a lcid=9a1fd622 sid=0000000001061c06 guid=0000000000000000 qkey=00000000 qpn=000020 "
        "resp_res=0 init_depth=0 rem_cm_to=20 tst=0 flow=0 psn=2284da loc_cm_to=20 retry=0 pkey=ffff mtu=3 rnr=0 "
        "max_cm_retries=15 srq=0 sgid=10.77.0.2 dgid=10.77.0.1 flow_label=00000 tc=0 hop=0 sl=0 ack_to=0 "
        "cma[ipv=4 sport=57670 src=10.77.0.2 dst=10.77.0.1] pd=cafe");
}

TEST_CASE("each kind of message prints its name and its ids", "[packet][print]") {
  const CommId local(0x01020304), remote(0x05060708);
  const auto starts = [](const CmMessage::Body& body, const std::string& start) {
    const std::string text = to_string(CmMessage{1, body});
    INFO(text);
    return text.rfind("CM " + start, 0) == 0;
  };
  const std::string ids = " tid=0000000000000001 lcid=01020304 rcid=05060708 ";
  CHECK(starts(CmMra{local, remote, CmAnswered::Req, 24, {}}, "MRA" + ids + "msg_mraed=0 service_to=24 pd="));
  CHECK(starts(CmRej{local, remote, CmAnswered::Req, 0, RejReason::InvalidServiceId, {}, {}},
               "REJ" + ids + "msg_rejected=0 info_len=0 reason=8 ari= pd="));
  CHECK(starts(CmRep{.local_id = local, .remote_id = remote}, "REP" + ids + "qkey=00000000 qpn=000000"));
  CHECK(starts(CmRtu{local, remote, {}}, "RTU" + ids + "pd="));
  CHECK(starts(CmDrep{local, remote, {}}, "DREP" + ids + "pd="));
  CHECK(starts(CmLap{.local_id = local, .remote_id = remote}, "LAP" + ids + "remote_qpn=000000"));
  CHECK(starts(CmApr{.local_id = local, .remote_id = remote, .status = 2}, "APR" + ids + "info_len=0 status=2"));
  CHECK(starts(CmSidrReq{.request_id = 9}, "SIDR_REQ tid=0000000000000001 reqid=00000009"));
  CHECK(starts(CmSidrRep{.request_id = 9, .status = SidrStatus::InvalidServiceId},
               "SIDR_REP tid=0000000000000001 reqid=00000009 status=1"));
}
