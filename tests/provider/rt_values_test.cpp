// SPDX-License-Identifier: MIT
// Goal: the device's clock counts as the device says it does. Method: the public verbs API, beside the system's clock.
#include <catch2/catch.hpp>
#include <cerrno>
#include <ctime>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

TEST_CASE("the device's clock counts nanoseconds, all of its bits, and runs on", "[rt_values]") {
  Device device;
  ibv_device_attr_ex attr{};
  REQUIRE(ibv_query_device_ex(device.context, nullptr, &attr) == 0);
  CHECK(attr.hca_core_clock == 1'000'000);  // kHz
  CHECK(attr.completion_timestamp_mask == ~std::uint64_t{0});
  ibv_values_ex first{IBV_VALUES_MASK_RAW_CLOCK, {}};
  ibv_values_ex second{IBV_VALUES_MASK_RAW_CLOCK, {}};
  REQUIRE(ibv_query_rt_values_ex(device.context, &first) == 0);
  REQUIRE(ibv_query_rt_values_ex(device.context, &second) == 0);
  CHECK(first.comp_mask == IBV_VALUES_MASK_RAW_CLOCK);
  CHECK(first.raw_clock.tv_sec == 0);
  CHECK(first.raw_clock.tv_nsec > 0);
  CHECK(first.raw_clock.tv_nsec <= second.raw_clock.tv_nsec);
}

TEST_CASE("values that were not asked for are left alone, unknown ones are refused", "[rt_values]") {
  Device device;
  ibv_values_ex values{0, {5, 6}};
  REQUIRE(ibv_query_rt_values_ex(device.context, &values) == 0);
  CHECK(values.comp_mask == 0);
  CHECK(values.raw_clock.tv_sec == 5);
  CHECK(values.raw_clock.tv_nsec == 6);
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK << 1;
  CHECK(ibv_query_rt_values_ex(device.context, &values) == EINVAL);
}
