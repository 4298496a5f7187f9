// SPDX-License-Identifier: MIT
// Goal: attributes that this device does not have are refused with a sentence, as the kernel and mlx5 refuse them over
// RoCE, and those that are only too long are cut as they cut them. Method: the conversion alone, with a device made by
// hand.
#include "provider/qp_attributes.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

using namespace nicless;
using namespace nicless::provider;

namespace {

GidEntry entry(unsigned last) {
  wire::Gid gid;
  gid.bytes[10] = gid.bytes[11] = std::byte{0xff};
  gid.bytes[12] = std::byte{10};
  gid.bytes[15] = std::byte(last);
  return {gid, 1};
}

struct Fixture {
  Fixture() {
    device.mtu_bytes = 1024;
    device.gids = {entry(1), entry(2), entry(1), entry(1)};
    attr.port_num = 1;
    attr.path_mtu = IBV_MTU_1024;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    const GidEntry peer = entry(9);
    std::memcpy(attr.ah_attr.grh.dgid.raw, peer.gid.bytes.data(), 16);
  }
  std::string refusal(std::uint32_t mask) {
    const auto converted = attributes_of(device, attr, mask);
    if (converted) return "";
    CHECK(converted.error().errno_value == EINVAL);
    return converted.error().why;
  }
  Device device;
  ibv_qp_attr attr{};
};

}  // namespace

TEST_CASE("ports, P_Key indexes and MTUs that the device does not have are refused", "[provider][qp_attributes]") {
  Fixture f;
  CHECK(f.refusal(IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MTU | IBV_QP_AV) == "");
  f.attr.port_num = 2;
  CHECK(f.refusal(IBV_QP_PORT) == "port_num is 2, the device has port 1 only");
  f.attr.pkey_index = 1;
  CHECK(f.refusal(IBV_QP_PKEY_INDEX) == "pkey_index is 1, the P_Key table has index 0 only");
  f.attr.path_mtu = IBV_MTU_2048;
  CHECK(f.refusal(IBV_QP_PATH_MTU) == "path_mtu is 2048 bytes, the port's active_mtu is 1024");
  f.attr.path_mtu = static_cast<ibv_mtu>(0);
  CHECK(f.refusal(IBV_QP_PATH_MTU) == "path_mtu is no value of enum ibv_mtu");
  f.attr.path_mtu = static_cast<ibv_mtu>(6);
  CHECK(f.refusal(IBV_QP_PATH_MTU) == "path_mtu is no value of enum ibv_mtu");
  CHECK(f.refusal(IBV_QP_STATE) == "");  // without its bit a field is not looked at
}

TEST_CASE("address vectors that lead nowhere from here are refused", "[provider][qp_attributes]") {
  Fixture f;
  f.attr.ah_attr.grh.sgid_index = 4;
  CHECK(f.refusal(IBV_QP_AV) == "there is no address at sgid_index 4; `nicless devices` lists them");
  f.attr.ah_attr.grh.sgid_index = 255;
  CHECK(f.refusal(IBV_QP_AV) == "there is no address at sgid_index 255; `nicless devices` lists them");
  f.attr.ah_attr.grh.sgid_index = 0;
  f.attr.ah_attr.port_num = 0;
  CHECK(f.refusal(IBV_QP_AV) == "ah_attr.port_num is 0, the device has port 1 only");
  f.attr.ah_attr.is_global = 0;
  CHECK(f.refusal(IBV_QP_AV) ==
        "ah_attr.is_global must be 1: RoCE addresses are GIDs (a program's -g option; "
        "without one, nicless run --lids)");
}

TEST_CASE("there are no alternate paths over RoCE, so a path can only have migrated", "[provider][qp_attributes]") {
  Fixture f;
  CHECK(f.refusal(IBV_QP_ALT_PATH) == "IBV_QP_ALT_PATH: RoCE has no alternate paths and no path migration");
  f.attr.path_mig_state = IBV_MIG_MIGRATED;
  CHECK(f.refusal(IBV_QP_PATH_MIG_STATE) == "");
  f.attr.path_mig_state = GENERATE(IBV_MIG_REARM, IBV_MIG_ARMED);
  CHECK(f.refusal(IBV_QP_PATH_MIG_STATE) ==
        "path_mig_state can only be IBV_MIG_MIGRATED: RoCE has no alternate path to arm");
  f.attr.path_mig_state = static_cast<ibv_mig_state>(3);
  CHECK(f.refusal(IBV_QP_PATH_MIG_STATE) == "path_mig_state is no value of enum ibv_mig_state");
}

TEST_CASE("PSNs and QPNs lose what is above their 24 bits", "[provider][qp_attributes]") {
  Fixture f;
  f.attr.rq_psn = 0xaa123456;
  f.attr.sq_psn = 0x01000000;
  f.attr.dest_qp_num = 0xff00ffff;
  const auto converted = attributes_of(f.device, f.attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_DEST_QPN);
  REQUIRE(converted.has_value());
  CHECK(converted->rq_psn == 0x123456);
  CHECK(converted->sq_psn == 0);
  CHECK(converted->dest_qpn == queue::Qpn{0xffff});
}

TEST_CASE("SQ_DRAINED is wanted if the attribute says so, not by the mask alone", "[provider][qp_attributes]") {
  Fixture f;
  CHECK_FALSE(attributes_of(f.device, f.attr, IBV_QP_EN_SQD_ASYNC_NOTIFY)->sqd_async_notify);
  f.attr.en_sqd_async_notify = 1;
  CHECK(attributes_of(f.device, f.attr, IBV_QP_EN_SQD_ASYNC_NOTIFY)->sqd_async_notify);
  CHECK_FALSE(attributes_of(f.device, f.attr, IBV_QP_STATE)->sqd_async_notify);
}

TEST_CASE("a query tells whether a send queue still drains", "[provider][qp_attributes]") {
  wire::QpAttributes now;
  now.state = wire::QpState::Sqd;
  now.sq_draining = true;
  ibv_qp_attr told{};
  refresh(now, told);
  CHECK(told.qp_state == IBV_QPS_SQD);
  CHECK(told.sq_draining == 1);
  CHECK(told.path_mig_state == IBV_MIG_MIGRATED);
}
