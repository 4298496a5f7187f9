// SPDX-License-Identifier: MIT
// Goal: programs that hard-code a GID index find an address that works, the most useful one first, and a device's MTU,
// GUID and name come out of the machine's interfaces as documented.
// Method: interfaces as values; whole tables compared.
#include "provider/gid_table.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

using namespace nicless;
using namespace nicless::provider;

namespace {

wire::Gid gid4(unsigned a, unsigned b, unsigned c, unsigned d) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte(a);
  gid.bytes[13] = std::byte(b);
  gid.bytes[14] = std::byte(c);
  gid.bytes[15] = std::byte(d);
  return gid;
}

wire::Gid gid6(unsigned first, unsigned second, unsigned last) {
  wire::Gid gid;
  gid.bytes[0] = std::byte(first);
  gid.bytes[1] = std::byte(second);
  gid.bytes[15] = std::byte(last);
  return gid;
}

const wire::Gid kLoopback4 = gid4(127, 0, 0, 1);
const wire::Gid kLoopback6 = gid6(0, 0, 1);
const wire::Gid kLinkLocal6 = gid6(0xfe, 0x80, 7);
const wire::Gid kLinkLocal4 = gid4(169, 254, 3, 4);
const wire::Gid kEth4 = gid4(10, 0, 0, 2);
const wire::Gid kEth6 = gid6(0xfd, 0x77, 2);

Interface loopback() {
  return {"lo", 1, 65536, true, {}, {kLoopback4, kLoopback6}};
}
Interface ethernet() {
  return {"eth0", 2, 1500, true, {2, 0, 0, 0, 0, 9}, {kEth4, kEth6, kLinkLocal6}};
}

std::vector<GidEntry> table_of(std::vector<Interface> interfaces) {
  return make_gid_table(interfaces);
}

}  // namespace

TEST_CASE("routable IPv4 comes first, then routable IPv6, loopback, link-local", "[provider][gid]") {
  Interface second = ethernet();
  second.addresses.insert(second.addresses.begin(), kLinkLocal4);
  CHECK(table_of({loopback(), second}) ==
        std::vector<GidEntry>{
            {kEth4, 2}, {kEth6, 2}, {kLoopback4, 1}, {kLoopback6, 1}, {kLinkLocal4, 2}, {kLinkLocal6, 2}});
}

TEST_CASE("an address behind a cable comes before one of an interface without a carrier", "[provider][gid]") {
  const Interface bridge{"docker0", 2, 1500, false, {}, {gid4(172, 17, 0, 1)}};
  Interface cable = ethernet();
  cable.index = 3;
  const auto table = table_of({loopback(), bridge, cable});
  CHECK(table[0] == GidEntry{kEth4, 3});
  CHECK(table[1] == GidEntry{gid4(172, 17, 0, 1), 2});
}

TEST_CASE("a table with fewer than four addresses repeats the first", "[provider][gid]") {
  CHECK(table_of({loopback()}) ==
        std::vector<GidEntry>{{kLoopback4, 1}, {kLoopback6, 1}, {kLoopback4, 1}, {kLoopback4, 1}});
}

TEST_CASE("no address makes an empty table", "[provider][gid]") {
  CHECK(table_of({}).empty());
  CHECK(table_of({Interface{"lo", 1, 65536, true, {}, {}}}).empty());
}

TEST_CASE("a table does not grow beyond its length", "[provider][gid]") {
  Interface many = ethernet();
  for (unsigned i = 0; i < 2 * kGidTableLength; ++i) many.addresses.push_back(gid4(10, 1, 0, i));
  CHECK(table_of({many}).size() == kGidTableLength);
}

TEST_CASE("the MTU is what Soft-RoCE makes of the interface's", "[provider][mtu]") {
  CHECK(roce_mtu_bytes(1500) == 1024);
  CHECK(roce_mtu_bytes(65536) == 4096);
  CHECK(roce_mtu_bytes(9000) == 4096);
  CHECK(roce_mtu_bytes(4200) == 4096);
  CHECK(roce_mtu_bytes(4096) == 2048);
  CHECK(roce_mtu_bytes(1280) == 1024);
  CHECK(roce_mtu_bytes(600) == 512);
  CHECK(roce_mtu_bytes(68) == 256);
}

TEST_CASE("a device's MTU is the smallest of the interfaces that lead to other hosts", "[provider][mtu]") {
  Interface jumbo = ethernet();
  jumbo.mtu_bytes = 9000;
  CHECK(device_mtu_bytes(std::vector{loopback(), ethernet(), jumbo}) == 1024);
  CHECK(device_mtu_bytes(std::vector{loopback(), jumbo}) == 4096);
  CHECK(device_mtu_bytes(std::vector{loopback()}) == 4096);
  CHECK(device_mtu_bytes(std::vector<Interface>{}) == 256);
  Interface bare = ethernet();
  bare.addresses = {kLinkLocal6};
  CHECK(device_mtu_bytes(std::vector{loopback(), bare}) == 1024);
}

TEST_CASE("a GUID is the same again, and another for another machine, interface or name", "[provider][guid]") {
  const std::vector here{loopback(), ethernet()};
  std::vector there = here;
  there[1].mac[5] = 10;
  const auto guid = device_guid("m1", here, "nicless0");
  CHECK(guid == device_guid("m1", here, "nicless0"));
  CHECK(guid != device_guid("m2", here, "nicless0"));
  CHECK(guid != device_guid("m1", there, "nicless0"));
  CHECK(guid != device_guid("m1", here, "nicless1"));
}

TEST_CASE("a GUID is an EUI-64, individual and locally administered", "[provider][guid]") {
  for (const char* name : {"nicless0", "a", "b", "c", "d", "e"}) {
    const auto guid = device_guid("", {}, name);
    CHECK((guid >> 24 & 0xffff) == 0xfffe);
    CHECK((guid >> 56 & 0x03) == 0x02);
  }
}

TEST_CASE("NICLESS_DEVICES names devices and their interfaces", "[provider][devices]") {
  CHECK(*parse_device_specs("a=eth0,b=lo") == std::vector<DeviceSpec>{{"a", {"eth0"}}, {"b", {"lo"}}});
  CHECK(*parse_device_specs("x0=eth0+eth1.7") == std::vector<DeviceSpec>{{"x0", {"eth0", "eth1.7"}}});
}

TEST_CASE("what is no list of devices is refused with a sentence that quotes it", "[provider][devices]") {
  const auto [text, says] = GENERATE(table<std::string, std::string>({
      {"a", "\"a\" names no interface"},
      {"", "\"\" names no interface"},
      {"a=eth0,", "\"\" names no interface"},
      {"=eth0", "\"=eth0\" names a device, and the name is empty"},
      {"../x=eth0", "\"../x=eth0\" names a device, and the name begins with a dot"},
      {"a b=eth0", "names a device, and the name has other characters than letters, digits and -_.:"},
      {std::string(64, 'n') + "=eth0", "names a device, and the name has more than 63 characters"},
      {"a=", "\"a=\" names an interface, and the name is empty"},
      {"a=eth0+", "\"a=eth0+\" names an interface, and the name is empty"},
      {"a=eth0/1", "names an interface, and the name has other characters than letters, digits and -_.:"},
      {"a=eth0,a=lo", "names the device \"a\" twice"},
  }));
  const auto specs = parse_device_specs(text);
  REQUIRE(specs.has_error());
  CHECK(specs.error().errno_value == EINVAL);
  CHECK_THAT(specs.error().why, Catch::Contains(says));
}

TEST_CASE("a device may be given one address, and any of 127.0.0.0/8", "[provider][devices]") {
  const std::vector<Interface> machine{loopback(), ethernet()};
  CHECK(find_interface(machine, "eth0")->addresses == ethernet().addresses);
  const auto narrowed = find_interface(machine, "10.0.0.2");
  REQUIRE(narrowed);
  CHECK(narrowed->name == "eth0");
  CHECK(narrowed->addresses == std::vector{kEth4});
  CHECK(find_interface(machine, "fd77::2")->addresses == std::vector{kEth6});
  CHECK(find_interface(machine, "127.9.0.2")->addresses == std::vector{gid4(127, 9, 0, 2)});
  CHECK(!find_interface(machine, "10.0.0.3"));
  CHECK(!find_interface(machine, "eth1"));
}
