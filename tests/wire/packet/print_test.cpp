// SPDX-License-Identifier: MIT
// Goal: one line says what a packet is, in the words of the captures' listings. Method: captured packets and the line
// each must give.
#include "wire/packet/print.h"

#include <catch2/catch.hpp>

#include "tests/support/bytes.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

std::string line(std::string_view hex) {
  const auto bytes = test::bytes_of(hex);
  const Decoded decoded = decode(bytes);
  REQUIRE(decoded);
  return to_string(decoded.packet);
}

}  // namespace

TEST_CASE("a packet prints its headers and its length", "[packet][print]") {
  CHECK(line("0430ffff0000002c80f81f82 7b000000 00000000") == "RC_SEND_ONLY qp=00002c psn=f81f82 a=1 se=0 pad=3 len=1");
  CHECK(line("0c00ffff00000020802284da 00005564d3910370 00002157 00000040 c883a98c") ==
        "RC_READ_REQ qp=000020 psn=2284da a=1 se=0 pad=0 reth[va=00005564d3910370 rkey=00002157 len=64] len=0");
  CHECK(line("1200ffff0000003f0046a5fe 1f000001 e9745dbb0435e749 2c45fbcc") ==
        "RC_ATOMIC_ACK qp=00003f psn=46a5fe a=0 se=0 pad=0 aeth[syn=1f ACK cr=31 msn=000001] orig=e9745dbb0435e749 "
        "len=0");
  CHECK(line("1300ffff0000003d8046a5fe 00005626a1db3000 00003509 0000000000000001 0000000000000002 768513ed") ==
        "RC_CMP_SWP qp=00003d psn=46a5fe a=1 se=0 pad=0 atm[va=00005626a1db3000 rkey=00003509 "
        "swap_add=0000000000000001 cmp=0000000000000002] len=0");
  CHECK(line("6500ffff0000002600000000 0123456700000028 01020304 48597ab3") ==
        "UD_SEND_ONLY_IMM qp=000026 psn=000000 a=0 se=0 pad=0 qkey=01234567 sqp=000028 imm=01020304 len=0");
  CHECK(line("1700ffff0000005c806a6778 08000160 125755bb") ==
        "RC_SEND_ONLY_INV qp=00005c psn=6a6778 a=1 se=0 pad=0 inv_rkey=08000160 len=0");
}

TEST_CASE("a NAK prints its code, an RNR NAK its timer", "[packet][print]") {
  CHECK(line("1100ffff00000068006a6779 62000003 d2dfb0b2") ==
        "RC_ACK qp=000068 psn=6a6779 a=0 se=0 pad=0 aeth[syn=62 NAK REM_ACCESS msn=000003] len=0");
  CHECK(line("1100ffff0000006500d36ad1 20000000 a4a7b48c") ==
        "RC_ACK qp=000065 psn=d36ad1 a=0 se=0 pad=0 aeth[syn=20 RNR timer=0 msn=000000] len=0");
}

TEST_CASE("what is rare is printed when it is there", "[packet][print]") {
  CHECK(line("04c0000140000001000000ff 00000000") ==
        "RC_SEND_ONLY qp=000001 psn=0000ff a=0 se=1 pad=0 pkey=0001 m=1 r8a=40 len=0");
}

TEST_CASE("a datagram prints where it goes, or why it is no packet", "[packet][print]") {
  const Endpoint from{test::ipv4(10, 77, 0, 2), 58285}, to{test::ipv4(10, 77, 0, 1), 4791};
  CHECK(datagram_to_string(test::bytes_of("0400ffff0000001e809c37bb b4c54dac"), from, to) ==
        "10.77.0.2:58285>10.77.0.1:4791 RC_SEND_ONLY qp=00001e psn=9c37bb a=1 se=0 pad=0 len=0");
  CHECK(datagram_to_string(test::bytes_of("0400"), from, to) ==
        "10.77.0.2:58285>10.77.0.1:4791 not a packet: shorter than its headers and the ICRC, 2 bytes");
}

TEST_CASE("a datagram to QP 1 prints the message in it", "[packet][print]") {
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Ud, Op::SendOnly);
  headers.bth.dest_qp = queue::Qpn(1);
  headers.deth = {0x80010000, queue::Qpn(1)};
  auto mad = encode(CmMessage{0x222d61f9a, CmDreq{CommId(1), CommId(2), queue::Qpn(0x1e), {}}});
  const char* start = "UD_SEND_ONLY qp=000001 psn=000000 a=0 se=0 pad=0 qkey=80010000 sqp=000001 len=256 ";
  CHECK(to_string(PacketView{headers, mad}) ==
        start + std::string("CM DREQ tid=0000000222d61f9a lcid=00000001 rcid=00000002 remote_qpn=00001e pd="));
  mad[1] = std::byte{3};
  CHECK(to_string(PacketView{headers, mad}) == start + std::string("MAD: not of the connection manager's class"));
}
