// SPDX-License-Identifier: MIT
// Goal: every message of the connection manager is the bytes that the kernel sends, and comes back as it went. Method:
// captured messages written out field by field, each message with no field left at its default, and what is no message.
#include "wire/packet/mad.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

// `hex`, then zeros to the end.
CmMessage::Body body_of(std::string_view hex) {
  std::vector<std::byte> bytes = test::bytes_of(hex);
  bytes.resize(CmMessage::kSize);
  const std::span<const std::byte> view = bytes;
  const DecodedCm decoded = decode_cm(view.first<CmMessage::kSize>());
  REQUIRE(decoded);
  CHECK(test::hex_of(encode(decoded.message)) == test::hex_of(bytes));
  CHECK(decoded.message.tid == 0x222d61f9a);
  return decoded.message.body;
}

template <std::size_t N>
std::array<std::byte, N> counting(unsigned first) {
  std::array<std::byte, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = static_cast<std::byte>((first + i) & 0xff);
  return out;
}

CmPath path_with_all_fields() {
  CmPath path;
  path.local_lid = 0x1112;
  path.remote_lid = 0x1314;
  path.local_gid = test::ipv4(10, 0, 0, 1);
  path.remote_gid = test::gid_of("fd770000000000000000000000000001");
  path.flow_label = 0xfedcb;
  path.packet_rate = 0x2a;
  path.traffic_class = 0x60;
  path.hop_limit = 63;
  path.service_level = 9;
  path.subnet_local = true;
  path.ack_timeout = 21;
  return path;
}

CmReq req_with_all_fields() {
  CmReq req;
  req.local_id = CommId(0x01020304);
  req.service = service_id(PortSpace::Tcp, 7471);
  req.local_ca_guid = 0x505400fffe000002;
  req.local_qkey = 0x80010000;
  req.local_qpn = queue::Qpn(0x8f1203);
  req.responder_resources = 16;
  req.initiator_depth = 15;
  req.remote_response_timeout = 19;
  req.local_response_timeout = 18;
  req.transport = CmService::Extended;
  req.flow_control = true;
  req.starting_psn = Psn(0xfedcba);
  req.retry_count = 5;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 14;
  req.pkey = 0x8001;
  req.path_mtu = 5;
  req.rdc_exists = true;
  req.srq = true;
  req.extended_transport = 1;
  req.ece = {0x313233, 0x41424344};
  req.primary = path_with_all_fields();
  req.alternate = path_with_all_fields();
  req.alternate.local_lid = 0x2122;
  req.alternate.ack_timeout = 3;
  req.private_data = counting<CmReq::kPrivateBytes>(1);
  return req;
}

}  // namespace

TEST_CASE("a captured REQ decodes to what the kernel meant", "[packet][mad]") {
  const CmReq req = std::get<CmReq>(body_of(
      "01070203000000000000000222d61f9a0010000000000000"
      "9a1fd622000000000000000001061c06505400fffe00000200000000000000000000200100000001000000a02284daa7ffff37f0ffffffff"
      "00000000000000000000ffff0a4d000200000000000000000000ffff0a4d0001b638000000400098"
      "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
      "0040e1460000000000000000000000000a4d00020000000000000000000000000a4d0001"));
  CmReq expected;
  expected.local_id = CommId(0x9a1fd622);
  expected.service = service_id(PortSpace::Tcp, 7174);
  expected.local_ca_guid = 0x505400fffe000002;
  expected.local_qpn = queue::Qpn(0x20);
  expected.responder_resources = 1;
  expected.initiator_depth = 1;
  expected.starting_psn = Psn(0x2284da);
  expected.retry_count = 7;
  expected.rnr_retry_count = 7;
  expected.path_mtu = 3;
  expected.primary.local_lid = expected.primary.remote_lid = 0xffff;
  expected.primary.local_gid = test::ipv4(10, 77, 0, 2);
  expected.primary.remote_gid = test::ipv4(10, 77, 0, 1);
  expected.primary.flow_label = 0xb6380;
  expected.primary.hop_limit = 64;
  expected.primary.ack_timeout = 19;
  expected.set_private_data({4, 57670, test::ipv4(10, 77, 0, 2), test::ipv4(10, 77, 0, 1)}, {});
  CHECK(req == expected);
}

TEST_CASE("a captured REJ carries the program's words", "[packet][mad]") {
  std::string hex = "01070203000000000000000222d61f9a0012000000000000d46dc14ea21fd6220000001c";
  hex.append(2 * CmRej::kInfoBytes, '0');
  hex += "676f2d617761792d706c65617365";
  CmRej expected;
  expected.local_id = CommId(0xd46dc14e);
  expected.remote_id = CommId(0xa21fd622);
  expected.reason = RejReason::ConsumerDefined;
  expected.private_data = padded<CmRej::kPrivateBytes>(test::bytes_of("676f2d617761792d706c65617365"));
  CHECK(std::get<CmRej>(body_of(hex)) == expected);
}

TEST_CASE("a captured SIDR_REQ asks over IPv6", "[packet][mad]") {
  const CmSidrReq req =
      std::get<CmSidrReq>(body_of("01070203000000000000000222d61f9a0017000000000000821fd622ffff00000000000001111c06"
                                  "0060acbdfd770000000000000000000000000002fd770000000000000000000000000001"));
  CHECK(req.service == service_id(PortSpace::Udp, 7174));
  CHECK(req.cma() == CmaHeader{6, 0xacbd, test::gid_of("fd770000000000000000000000000002"),
                               test::gid_of("fd770000000000000000000000000001")});
  CHECK(req.user_data().size() == CmSidrReq::kUserBytes);
}

TEST_CASE("every message comes back as it went", "[packet][mad]") {
  const CommId local(0x01020304), remote(0x05060708);
  const CmMessage::Body bodies[] = {
      req_with_all_fields(),
      CmMra{local, remote, CmAnswered::Other, 24, counting<CmMra::kPrivateBytes>(2)},
      CmRej{local, remote, CmAnswered::Rep, 72, RejReason::InvalidServiceId, counting<CmRej::kInfoBytes>(3),
            counting<CmRej::kPrivateBytes>(4)},
      CmRep{local, remote, 0x11223344, queue::Qpn(0x8f1203), 0xabcdef, Psn(0x123456), 7, 8, 17, 2, true, 6, true,
            0x505400fffe000001, CmEce{0xa1b2c3, 0xd4e5f607}, counting<CmRep::kPrivateBytes>(5)},
      CmRtu{local, remote, counting<CmRtu::kPrivateBytes>(6)},
      CmDreq{local, remote, queue::Qpn(0x8f1203), counting<CmDreq::kPrivateBytes>(7)},
      CmDrep{local, remote, counting<CmDrep::kPrivateBytes>(8)},
      CmSidrReq{9, 0x8001, service_id(PortSpace::Ib, 1), counting<CmSidrReq::kPrivateBytes>(9)},
      CmSidrRep{9, SidrStatus::Redirect, 40, queue::Qpn(0x8f1203), service_id(PortSpace::Udp, 80), 0x01234567,
                counting<CmSidrRep::kInfoBytes>(10), counting<CmSidrRep::kPrivateBytes>(11)},
      CmLap{local, remote, queue::Qpn(0x8f1203), 30, path_with_all_fields(), counting<CmLap::kPrivateBytes>(12)},
      CmApr{local, remote, 72, CmApr::kUnsupported, counting<CmApr::kInfoBytes>(13),
            counting<CmApr::kPrivateBytes>(14)},
  };
  REQUIRE(std::size(bodies) == std::variant_size_v<CmMessage::Body>);
  for (const CmMessage::Body& body : bodies) {
    const CmMessage message{0x1122334455667788, body};
    INFO(name_of(message));
    const DecodedCm decoded = decode_cm(encode(message));
    REQUIRE(decoded);
    CHECK((decoded.message == message));
  }
}

TEST_CASE("what is no CM message says why", "[packet][mad]") {
  auto bytes = encode(CmMessage{1, CmRtu{}});
  const auto error_with = [&bytes](std::size_t at, unsigned value) {
    auto changed = bytes;
    changed[at] = static_cast<std::byte>(value);
    return decode_cm(changed).error;
  };
  CHECK(error_with(0, 2) == CmDecodeError::BadBaseVersion);
  CHECK(error_with(1, 3) == CmDecodeError::NotCm);
  CHECK(error_with(2, 1) == CmDecodeError::BadClassVersion);
  CHECK(error_with(3, 0x81) == CmDecodeError::BadMethod);
  CHECK(error_with(16, 0xff) == CmDecodeError::UnknownAttribute);
  CHECK(error_with(17, 0x0f) == CmDecodeError::UnknownAttribute);
  CHECK(error_with(17, 0x1b) == CmDecodeError::UnknownAttribute);
  CHECK(error_with(17, 0x1a) == CmDecodeError::None);
  CHECK(std::string(describe(CmDecodeError::NotCm)) == "not of the connection manager's class");
}

TEST_CASE("a service id is a port space and a port", "[packet][mad]") {
  CHECK(service_id(PortSpace::Tcp, 7471).value() == 0x0000000001061d2f);
  CHECK(service_id(PortSpace::Udp, 7174).value() == 0x0000000001111c06);
  CHECK(service_id(PortSpace::Ib, 1).value() == 0x00000000013f0001);
  CHECK(port_of(ServiceId(0x0000000001061d2f)) == 7471);
  CHECK(port_space_of(ServiceId(0x0000000001061d2f)) == PortSpace::Tcp);
  CHECK(port_space_of(ServiceId(0x1000000001061d2f)) == std::nullopt);
  CHECK(port_space_of(ServiceId(1)) == std::nullopt);
}

TEST_CASE("an IPv4 address travels with zeros before it", "[packet][mad]") {
  const CmaHeader cma{4, 57670, test::ipv4(10, 77, 0, 2), test::ipv4(10, 77, 0, 1)};
  CHECK(test::encoded_hex(cma) ==
        "0040e146"
        "0000000000000000000000000a4d0002"
        "0000000000000000000000000a4d0001");
  CHECK(CmaHeader::decode(test::encoded(cma)) == cma);
}

TEST_CASE("private data that is no CMA header says so", "[packet][mad]") {
  CmReq req;
  CHECK(req.cma() == std::nullopt);  // IP version 0
  req.set_private_data({6, 1, test::gid_of("fd770000000000000000000000000002"), test::ipv4(10, 0, 0, 1)}, {});
  CHECK(req.cma());
  req.private_data[0] = std::byte{1};
  CHECK(req.cma() == std::nullopt);
}

TEST_CASE("what a program gives follows the CMA header, padded with zeros", "[packet][mad]") {
  const CmaHeader cma{4, 1, test::ipv4(127, 0, 0, 1), test::ipv4(127, 0, 0, 1)};
  CmReq req;
  req.private_data.fill(std::byte{0xa5});
  req.set_private_data(cma, test::bytes_of("010203"));
  CHECK(req.cma() == cma);
  CHECK(test::hex_of(req.user_data()) == "010203" + std::string(2 * (CmReq::kUserBytes - 3), '0'));
}
