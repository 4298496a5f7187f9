// SPDX-License-Identifier: MIT
// Goal: protection domains and memory regions keep the promises of ibv_alloc_pd(3) and ibv_reg_mr(3).
// Method: the public verbs API, linked to our library.
#include <sys/mman.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

// As numbers: ibv_reg_mr is a macro that mixes two enums.
const int kLocalWrite = IBV_ACCESS_LOCAL_WRITE;
const int kRemoteWrite = IBV_ACCESS_REMOTE_WRITE;

}  // namespace

TEST_CASE("a PD is busy while a region belongs to it", "[pd_mr]") {
  Device device;
  {
    const Memory memory(device, 64);
    CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  }
  CHECK(ibv_dealloc_pd(device.pd) == 0);
  device.pd = nullptr;
}

TEST_CASE("a region has its own keys and says what it covers", "[pd_mr]") {
  Device device;
  const Memory a(device, 64);
  const Memory b(device, 64);
  CHECK(a.mr->addr == a.bytes.data());
  CHECK(a.mr->length == 64);
  CHECK(a.mr->pd == device.pd);
  CHECK(a.mr->context == device.context);
  CHECK(a.mr->lkey != a.mr->rkey);
  CHECK(a.mr->lkey != b.mr->lkey);
  CHECK(a.mr->rkey != b.mr->rkey);
}

TEST_CASE("memory that is not mapped, or not writable, is refused with EFAULT", "[pd_mr]") {
  Device device;
  constexpr std::size_t kPage = 4096;
  void* const pages = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  SECTION("not mapped") {
    REQUIRE(munmap(static_cast<char*>(pages) + kPage, kPage) == 0);
  }
  SECTION("read only") {
    REQUIRE(mprotect(static_cast<char*>(pages) + kPage, kPage, PROT_READ) == 0);
  }
  errno = 0;
  CHECK(ibv_reg_mr(device.pd, pages, 2 * kPage, kLocalWrite) == nullptr);
  CHECK(errno == EFAULT);
  munmap(pages, 2 * kPage);
}

TEST_CASE("remote write without local write is refused with EINVAL", "[pd_mr]") {
  Device device;
  char byte = 0;
  errno = 0;
  CHECK(ibv_reg_mr(device.pd, &byte, 1, kRemoteWrite) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("success leaves errno alone", "[pd_mr]") {
  Device device;
  errno = ENOTTY;
  {
    const Memory memory(device, 64);
    const Cq cq(device);
    ibv_wc wc;
    CHECK(ibv_poll_cq(cq.cq, 1, &wc) == 0);
  }
  CHECK(errno == ENOTTY);
}

TEST_CASE("a context stays usable for its objects until the last is gone", "[context]") {
  Device device;
  ibv_context* const second = ibv_open_device(device.context->device);
  REQUIRE(second != nullptr);
  ibv_pd* const pd = ibv_alloc_pd(second);
  REQUIRE(pd != nullptr);
  CHECK(ibv_close_device(second) == 0);
  CHECK(ibv_dealloc_pd(pd) == 0);
}
