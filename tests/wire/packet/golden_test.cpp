// SPDX-License-Identifier: MIT
// Goal: the codec reads and writes what the Linux kernel's Soft-RoCE sends, byte for byte. Method: every packet of
// tests/golden goes through decode, encode, seal, the ICRC check, the CM codec and the printer; the printed line is
// held against the words another program found for the same packet.
#include <catch2/catch.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/bytes.h"
#include "tests/support/golden.h"
#include "wire/packet/icrc.h"
#include "wire/packet/print.h"

using namespace nicless;
using namespace nicless::wire;

namespace {

const std::vector<test::GoldenPacket>& packets() {
  static const std::vector<test::GoldenPacket> all = test::golden_packets();
  return all;
}

constexpr std::size_t kPacketsExpected = 1510;

bool is_to_qp1(const PacketView& packet) {
  return packet.headers.bth.dest_qp == queue::Qpn(1);
}

std::multiset<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::multiset<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

// The words up to the management message, and those of it.
std::pair<std::string, std::string> split_at_cm(const std::string& text) {
  const std::size_t at = text.find(" CM ");
  return at == std::string::npos ? std::pair(text, std::string()) : std::pair(text.substr(0, at), text.substr(at));
}

// A CMA header and GIDs are written otherwise in the two texts.
std::string without_addresses(std::string text) {
  for (const auto& [begin, end] : {std::pair("cma[", "]"), std::pair("sgid=", " "), std::pair("dgid=", " ")}) {
    const std::size_t at = text.find(begin);
    if (at != std::string::npos) text.erase(at, text.find(end, at) - at + 1);
  }
  return text;
}

// Fields that the printer leaves out while they hold what they nearly always hold.
std::multiset<std::string> without_usual(std::multiset<std::string> words) {
  for (const char* usual : {"pkey=ffff", "m=0", "tver=0", "r8a=00"}) words.erase(usual);
  return words;
}

}  // namespace

TEST_CASE("the captures are all there", "[packet][golden]") {
  CHECK(packets().size() == kPacketsExpected);
}

TEST_CASE("every captured packet decodes and encodes to the same bytes", "[packet][golden]") {
  for (const test::GoldenPacket& golden : packets()) {
    INFO(golden.where);
    const Decoded decoded = decode(golden.bytes);
    REQUIRE(decoded);
    OutDatagram out;
    out.header.fill(std::byte{0xa5});
    out.trailer.fill(std::byte{0xa5});
    out.from = golden.from;
    out.to = golden.to;
    out.spans[0] = decoded.packet.payload;
    out.span_count = 1;
    finish_headers(decoded.packet.headers, out);
    seal(out, golden.ip_id);
    REQUIRE(to_bytes(out) == golden.bytes);
  }
}

TEST_CASE("the ICRC of every captured packet is good, and tells its IPv4 id", "[packet][golden]") {
  for (const test::GoldenPacket& golden : packets()) {
    INFO(golden.where);
    const IcrcCheck check = check_icrc({golden.bytes, golden.from, golden.to});
    REQUIRE(check.good);
    REQUIRE(check.ip_id == golden.ip_id);
  }
}

TEST_CASE("every captured CM message decodes and encodes to the same 256 bytes", "[packet][golden]") {
  std::set<std::string> kinds;
  for (const test::GoldenPacket& golden : packets()) {
    INFO(golden.where);
    const PacketView packet = decode(golden.bytes).packet;
    if (!is_to_qp1(packet)) continue;
    REQUIRE(packet.payload.size() == CmMessage::kSize);
    const DecodedCm decoded = decode_cm(packet.payload.first<CmMessage::kSize>());
    REQUIRE(decoded);
    REQUIRE(test::hex_of(encode(decoded.message)) == test::hex_of(packet.payload));
    kinds.insert(name_of(decoded.message));
  }
  CHECK(kinds == std::set<std::string>{"DREP", "DREQ", "MRA", "REJ", "REP", "REQ", "RTU", "SIDR_REP", "SIDR_REQ"});
}

TEST_CASE("the printed line holds what another program read in the same packet", "[packet][golden]") {
  for (const test::GoldenPacket& golden : packets()) {
    INFO(golden.where);
    const auto [theirs, their_cm] = split_at_cm(golden.words);
    const auto [ours, our_cm] = split_at_cm(to_string(decode(golden.bytes).packet));
    REQUIRE(without_usual(words_of(theirs)) == without_usual(words_of(ours)));
    const auto their_words = words_of(without_addresses(their_cm));
    for (const std::string& word : words_of(without_addresses(our_cm))) {
      INFO(word);
      REQUIRE(their_words.contains(word));
    }
  }
}

TEST_CASE("a captured REQ says in its CMA header who asks", "[packet][golden]") {
  const auto golden = test::golden_packets("rping-C2-ipv6");
  const PacketView packet = decode(golden.at(0).bytes).packet;
  const DecodedCm decoded = decode_cm(packet.payload.first<CmMessage::kSize>());
  REQUIRE(decoded);
  const std::optional<CmaHeader> cma = std::get<CmReq>(decoded.message.body).cma();
  REQUIRE(cma);
  CHECK(cma->ip_version == 6);
  CHECK(cma->source == golden[0].from.address);
  CHECK(cma->destination == golden[0].to.address);
}
