// SPDX-License-Identifier: MIT
// Goal: every process computes the same IP groups from a multicast GID, and a packet to one reaches the queue pairs
// that are in it, each once. Method: GIDs as text in and out; the table and the engine with packets made by hand.
#include "wire/multicast.h"

#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "wire/engine.h"
#include "wire/packet/icrc.h"
#include "wire/packet/opcode.h"

using namespace nicless;
using namespace nicless::wire;
using queue::Qpn;

namespace {

Gid gid(const std::string& text) {
  Gid gid;
  REQUIRE(inet_pton(AF_INET6, text.c_str(), gid.bytes.data()) == 1);
  return gid;
}

std::vector<Qpn> members(const MulticastTable& table, const Gid& group, Qpn source = Qpn(1), const Gid& from = {}) {
  std::vector<Qpn> found;
  table.for_each(group, source, from, [&](Qpn qpn) { found.push_back(qpn); });
  return found;
}

struct Listener final : QueuePair {
  void on_packet(queue::Instant, const PacketView& packet, const InDatagram&) override {
    psns.push_back(packet.headers.bth.psn.value());
  }
  void on_post(queue::Instant) override {}
  void on_deadline(queue::Instant) override {}
  bool next_datagram(queue::Instant, OutDatagram&) override { return false; }
  std::optional<queue::Instant> next_deadline() const override { return std::nullopt; }
  std::vector<std::uint32_t> psns;
};

std::vector<std::byte> datagram(const Endpoint& from, const Endpoint& to, std::uint32_t psn) {
  OutDatagram out;
  out.from = from;
  out.to = to;
  Headers headers;
  headers.bth.opcode = opcode_of(Service::Ud, Op::SendOnly);
  headers.bth.dest_qp = kMulticastQpn;
  headers.bth.psn = Psn(psn);
  headers.deth = {0x1234, Qpn(0x777701)};
  finish_headers(headers, out);
  seal(out, 0);
  return to_bytes(out);
}

}  // namespace

TEST_CASE("multicast GIDs are those of IPv6, and IPv4's mapped", "[multicast]") {
  for (const char* yes :
       {"ff02::1", "ff0e::ffff:239.1.2.3", "ff12:401b:ffff::1", "::ffff:224.0.0.1", "::ffff:239.255.255.255"}) {
    CHECK(is_multicast(gid(yes)));
  }
  for (const char* no : {"::", "fe80::1", "2001:db8::1", "::ffff:223.255.255.255", "::ffff:240.0.0.1", "::224.0.0.1"}) {
    CHECK(!is_multicast(gid(no)));
  }
}

TEST_CASE("a GID that names an IPv4 group is that group, and no group of IPv6", "[multicast]") {
  for (const char* name : {"::ffff:239.1.2.3", "ff0e::ffff:239.1.2.3", "ff02::ffff:239.1.2.3"}) {
    CHECK(to_string(ipv4_group(gid(name))) == "239.1.2.3");
    CHECK(!ipv6_group(gid(name)));
  }
}

TEST_CASE("any other GID is its own IPv6 group, and has one of 239.0.0.0/8", "[multicast]") {
  CHECK(ipv6_group(gid("ff0e::1234")) == gid("ff0e::1234"));
  CHECK(ipv6_group(gid("ff12:401b:ffff::1")) == gid("ff12:401b:ffff::1"));
  // These never change: processes of different builds meet there.
  CHECK(to_string(ipv4_group(gid("ff0e::1234"))) == "239.78.59.6");
  CHECK(ipv4_group(gid("ff0e::1234")) != ipv4_group(gid("ff0e::1235")));
}

TEST_CASE("the scope of an interface becomes that of a link, so that packets leave the host", "[multicast]") {
  CHECK(ipv6_group(gid("ff01::2:c985:0")) == gid("ff02::2:c985:0"));
  CHECK(ipv6_group(gid("ff11::1")) == gid("ff12::1"));
}

TEST_CASE("a queue pair is in a group until every GID that put it there is taken back", "[multicast]") {
  MulticastTable table;
  const Gid group = gid("::ffff:239.1.2.3");
  table.attach(group, {Qpn(0x100), {}});
  table.attach(group, {Qpn(0x100), {}});
  table.attach(group, {Qpn(0x200), {}});
  CHECK(members(table, group) == std::vector{Qpn(0x100), Qpn(0x200)});
  CHECK(members(table, gid("::ffff:239.1.2.4")).empty());

  table.detach(group, Qpn(0x100));
  CHECK(members(table, group) == std::vector{Qpn(0x100), Qpn(0x200)});
  table.detach(group, Qpn(0x100));
  CHECK(members(table, group) == std::vector{Qpn(0x200)});
  table.detach(group, Qpn(0x300));  // was never there
  table.detach(group, Qpn(0x200));
  CHECK(!table.has(group));
}

TEST_CASE("a queue pair that does not want to hear itself hears everybody else", "[multicast]") {
  MulticastTable table;
  const Gid group = gid("ff0e::1");
  const Gid own = gid("::ffff:10.0.0.1");
  const Gid other_host = gid("::ffff:10.0.0.2");
  table.attach(group, {Qpn(0x100), {own}});
  CHECK(members(table, group, Qpn(0x100), own).empty());
  CHECK(members(table, group, Qpn(0x200), own) == std::vector{Qpn(0x100)});
  CHECK(members(table, group, Qpn(0x100), other_host) == std::vector{Qpn(0x100)});  // the same number elsewhere
}

TEST_CASE("a packet to the multicast QPN reaches every queue pair of its group, once, and no other", "[multicast]") {
  Engine engine(0x7777);
  Listener in_group, also_in_group, outside;
  std::vector<Qpn> qpns;
  for (Listener* each : {&in_group, &also_in_group, &outside}) {
    qpns.push_back(*engine.reserve_qpn());
    engine.add(qpns.back(), *each);
  }
  const Gid group = gid("::ffff:239.1.2.3");
  engine.multicast().attach(group, {qpns[0], {}});
  engine.multicast().attach(group, {qpns[1], {}});
  const Endpoint from{gid("::ffff:10.0.0.1"), 0x7777};
  const Endpoint to{group, kRoceUdpPort};
  const Endpoint other{gid("::ffff:239.1.2.4"), kRoceUdpPort};

  const auto first = datagram(from, to, 1);
  const auto second = datagram(from, other, 2);
  engine.on_datagram({}, {first, from, to});
  engine.on_datagram({}, {second, from, other});

  CHECK(in_group.psns == std::vector<std::uint32_t>{1});
  CHECK(also_in_group.psns == std::vector<std::uint32_t>{1});
  CHECK(outside.psns.empty());
  EngineCounters expected;
  expected.datagrams_in = 2;
  expected.unknown_qpn = 1;
  CHECK(engine.counters() == expected);
}

TEST_CASE("packets for a group go to the RoCE port, whatever the ports of queue pairs", "[multicast]") {
  CHECK(Addressing::port_in_qpn().udp_port_of(kMulticastQpn) == 4791);
  CHECK(Addressing::strict().udp_port_of(kMulticastQpn) == 4791);
}

TEST_CASE("no queue pair has the multicast QPN", "[multicast]") {
  Engine engine(0xffff);
  for (int i = 0; i < 255; ++i) CHECK(*engine.reserve_qpn() != kMulticastQpn);
  CHECK(engine.reserve_qpn().has_error());
}
