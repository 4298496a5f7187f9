// SPDX-License-Identifier: MIT
// Goal: a device answers what programs of any age ask, and writes no byte beyond what their structs hold.
// Method: a device made by hand; buffers filled with 0xa5 show what was written.
#include "provider/device.h"

#include <arpa/inet.h>
#include <endian.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

using namespace nicless;
using namespace nicless::provider;

namespace {

constexpr std::byte kFill{0xa5};

GidEntry entry(unsigned last, std::uint32_t interface) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = std::byte(last);
  return {gid, interface};
}

std::unique_ptr<Device> make() {
  auto device = std::make_unique<Device>();
  device->guid = 0x0200'00ff'fe00'0001;
  device->mtu_bytes = 1024;
  device->gids = {entry(1, 2), entry(2, 3), entry(1, 2), entry(1, 2)};
  return device;
}

template <std::size_t N>
std::array<std::byte, N> filled() {
  std::array<std::byte, N> bytes;
  bytes.fill(kFill);
  return bytes;
}

template <typename Bytes>
bool untouched_from(const Bytes& bytes, std::size_t from) {
  return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(),
                     [](std::byte b) { return b == kFill; });
}

}  // namespace

TEST_CASE("query_port writes as much as the caller's struct holds", "[provider][device]") {
  const auto device = make();
  const std::size_t size = GENERATE(48, 52, 56);
  auto bytes = filled<64>();
  REQUIRE(query_port(*device, 1, reinterpret_cast<ibv_port_attr*>(bytes.data()), size).has_value());
  CHECK(untouched_from(bytes, size));
  ibv_port_attr attr{};
  std::memcpy(&attr, bytes.data(), std::min(size, sizeof attr));
  CHECK(attr.state == IBV_PORT_ACTIVE);
  CHECK(attr.active_mtu == IBV_MTU_1024);
  CHECK(attr.max_mtu == IBV_MTU_4096);
  CHECK(attr.gid_tbl_len == static_cast<int>(kGidTableLength));
  CHECK(attr.pkey_tbl_len == 1);
  CHECK(attr.link_layer == IBV_LINK_LAYER_ETHERNET);
  CHECK(attr.max_msg_sz == 1u << 31);
  CHECK(attr.port_cap_flags2 == 0);
}

TEST_CASE("a longer struct of some later release gets zeroes for what we do not know", "[provider][device]") {
  const auto device = make();
  auto bytes = filled<80>();
  REQUIRE(query_port(*device, 1, reinterpret_cast<ibv_port_attr*>(bytes.data()), 72).has_value());
  CHECK(untouched_from(bytes, 72));
  CHECK(std::all_of(bytes.begin() + 56, bytes.begin() + 72, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("a device without an address has its port down", "[provider][device]") {
  const auto device = make();
  device->gids.clear();
  ibv_port_attr attr{};
  REQUIRE(query_port(*device, 1, &attr, sizeof attr).has_value());
  CHECK(attr.state == IBV_PORT_DOWN);
}

TEST_CASE("the active MTU is the enumerator of the device's", "[provider][device]") {
  const auto device = make();
  const auto [bytes, code] = GENERATE(table<unsigned, ibv_mtu>(
      {{256, IBV_MTU_256}, {512, IBV_MTU_512}, {1024, IBV_MTU_1024}, {2048, IBV_MTU_2048}, {4096, IBV_MTU_4096}}));
  device->mtu_bytes = bytes;
  ibv_port_attr attr{};
  REQUIRE(query_port(*device, 1, &attr, sizeof attr).has_value());
  CHECK(attr.active_mtu == code);
}

TEST_CASE("ports other than 1 do not exist", "[provider][device]") {
  const auto device = make();
  const std::uint32_t port = GENERATE(0u, 2u, 255u);
  ibv_port_attr attr{};
  ibv_gid gid;
  __be16 pkey = 0;
  CHECK(query_port(*device, port, &attr, sizeof attr).error().errno_value == EINVAL);
  CHECK(query_gid(*device, port, 0, &gid).error().errno_value == EINVAL);
  CHECK(query_pkey(port, 0, &pkey).error().errno_value == EINVAL);
}

TEST_CASE("query_device_ex writes as much as the caller's struct holds", "[provider][device]") {
  const auto device = make();
  const std::size_t size = GENERATE(240, 304, 400);
  auto bytes = filled<416>();
  REQUIRE(query_device_ex(*device, nullptr, reinterpret_cast<ibv_device_attr_ex*>(bytes.data()), size).has_value());
  CHECK(untouched_from(bytes, size));
  ibv_device_attr attr{};
  std::memcpy(&attr, bytes.data(), sizeof attr);
  CHECK(be64toh(attr.node_guid) == device->guid);
  CHECK(attr.phys_port_cnt == 1);
  CHECK(attr.max_sge == 32);
}

TEST_CASE("query_device_ex refuses an unknown mask and a struct that no release had", "[provider][device]") {
  const auto device = make();
  ibv_device_attr_ex attr{};
  const ibv_query_device_ex_input input{1};
  CHECK(query_device_ex(*device, &input, &attr, sizeof attr).error().errno_value == EINVAL);
  CHECK(query_device_ex(*device, nullptr, &attr, sizeof attr.orig_attr).error().errno_value == EINVAL);
}

TEST_CASE("every index of the GID table can be asked, and the empty ones are zero", "[provider][gid]") {
  const auto device = make();
  for (int index = 0; index < static_cast<int>(kGidTableLength); ++index) {
    ibv_gid gid;
    std::memset(&gid, 0xa5, sizeof gid);
    REQUIRE(query_gid(*device, 1, index, &gid).has_value());
    CHECK((gid.global.interface_id != 0) == (index < 4));
  }
  ibv_gid gid;
  CHECK(query_gid(*device, 1, -1, &gid).error().errno_value == EINVAL);
  CHECK(query_gid(*device, 1, static_cast<int>(kGidTableLength), &gid).error().errno_value == EINVAL);
}

TEST_CASE("query_gid_ex tells an empty entry from one outside the table", "[provider][gid]") {
  const auto device = make();
  ibv_gid_entry found{};
  REQUIRE(query_gid_ex(*device, 1, 1, &found, 0, sizeof found).has_value());
  CHECK(found.gid_index == 1);
  CHECK(found.port_num == 1);
  CHECK(found.gid_type == IBV_GID_TYPE_ROCE_V2);
  CHECK(found.ndev_ifindex == 3);
  CHECK(found.gid.raw[15] == 2);
  CHECK(query_gid_ex(*device, 1, 4, &found, 0, sizeof found).error().errno_value == ENODATA);
  CHECK(query_gid_ex(*device, 1, kGidTableLength, &found, 0, sizeof found).error().errno_value == EINVAL);
  CHECK(query_gid_ex(*device, 1, 0, &found, 1, sizeof found).error().errno_value == EINVAL);
}

TEST_CASE("query_gid_table lays its entries out as far apart as the caller's are", "[provider][gid]") {
  const auto device = make();
  auto bytes = filled<4 * 40 + 8>();
  const auto count = query_gid_table(*device, reinterpret_cast<ibv_gid_entry*>(bytes.data()), 4, 0, 40);
  REQUIRE(count.has_value());
  CHECK(*count == 4);
  CHECK(untouched_from(bytes, 160));
  ibv_gid_entry second;
  std::memcpy(&second, &bytes[40], sizeof second);
  CHECK(second.gid_index == 1);
  CHECK(second.ndev_ifindex == 3);
  ibv_gid_entry room[3];
  CHECK(query_gid_table(*device, room, 3, 0, sizeof room[0]).error().errno_value == EINVAL);
}

TEST_CASE("a GID is found by index and by address", "[provider][gid]") {
  const auto device = make();
  CHECK(find_gid(*device, 1) == entry(2, 3));
  CHECK_FALSE(find_gid(*device, 4).has_value());
  CHECK(find_gid_index(*device, entry(2, 0).gid) == 1u);
  CHECK_FALSE(find_gid_index(*device, entry(9, 0).gid).has_value());
}

TEST_CASE("the P_Key table holds the default key and nothing else", "[provider][device]") {
  __be16 pkey = 0;
  REQUIRE(query_pkey(1, 0, &pkey).has_value());
  CHECK(ntohs(pkey) == 0xffff);
  CHECK(query_pkey(1, 1, &pkey).error().errno_value == EINVAL);
  CHECK(*pkey_index(1, htons(0xffff)) == 0);
  CHECK(pkey_index(1, htons(0x8001)).error().errno_value == EINVAL);
}

TEST_CASE("a device list ends with NULL and names the same devices each time", "[provider][device]") {
  int count = 0;
  const auto first = device_list(&count);
  REQUIRE(first.has_value());
  REQUIRE(count == 1);
  CHECK((*first)[1] == nullptr);
  const auto second = device_list(nullptr);
  REQUIRE(second.has_value());
  CHECK((*second)[0] == (*first)[0]);
  CHECK(std::string((*first)[0]->name) == "nicless0");
  CHECK(std::string((*first)[0]->dev_name) == "uverbs0");
  free_device_list(*first);
  free_device_list(*second);
}
