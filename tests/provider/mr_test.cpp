// SPDX-License-Identifier: MIT
// Goal: regions of every kind keep the promises of ibv_rereg_mr(3), ibv_alloc_null_mr(3), ibv_alloc_dm(3),
// ibv_advise_mr(3) and ibv_reg_mr(3). Method: the public verbs API; messages between two queue pairs of this process.
#include <sys/mman.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

// As numbers: ibv_reg_mr is a macro that mixes two enums.
const int kLocalWrite = IBV_ACCESS_LOCAL_WRITE;
const int kOnDemand = IBV_ACCESS_ON_DEMAND;
const int kZeroBased = IBV_ACCESS_ZERO_BASED;

struct Pair {
  Pair() : cq(device), memory(device, 8192), a(device, rc_attr(cq.cq, cq.cq)), b(device, rc_attr(cq.cq, cq.cq)) {
    a.connect(b);
    b.connect(a);
    memory.fill(3);
  }
  // From A's list to B's; the statuses of the receive and of the send, in the order in which they came.
  void transfer(std::vector<ibv_sge> from, std::vector<ibv_sge> to) {
    REQUIRE(b.post_recv(7, std::move(to)) == 0);
    REQUIRE(a.post_send(8, std::move(from)) == 0);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
  }
  Device device;
  Cq cq;
  Memory memory;
  Qp a;
  Qp b;
};

class Dm {
 public:
  Dm(Device& device, std::size_t length) {
    ibv_alloc_dm_attr attr{};
    attr.length = length;
    dm = ibv_alloc_dm(device.context, &attr);
    REQUIRE(dm != nullptr);
  }
  ~Dm() { CHECK(ibv_free_dm(dm) == 0); }
  Dm(const Dm&) = delete;
  Dm& operator=(const Dm&) = delete;
  ibv_dm* dm = nullptr;
};

class Region {
 public:
  explicit Region(ibv_mr* made) : mr(made) { REQUIRE(mr != nullptr); }
  ~Region() { CHECK(ibv_dereg_mr(mr) == 0); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ibv_mr* const mr;
};

}  // namespace

TEST_CASE("a region is registered anew under its keys", "[mr]") {
  Pair pair;
  Memory other(pair.device, 4096);
  const std::uint32_t lkey = pair.memory.mr->lkey;
  std::vector<std::uint8_t> moved(100, 9);
  REQUIRE(ibv_rereg_mr(pair.memory.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, moved.data(), moved.size(), 0) == 0);
  CHECK(pair.memory.mr->addr == moved.data());
  CHECK(pair.memory.mr->length == 100);
  CHECK(pair.memory.mr->lkey == lkey);
  pair.transfer({{reinterpret_cast<std::uintptr_t>(moved.data()), 100, lkey}}, {other.sge(0, 100)});
  CHECK(other.bytes[99] == 9);
  REQUIRE(ibv_rereg_mr(pair.memory.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0) == 0);
  REQUIRE(pair.b.post_recv(7, {{reinterpret_cast<std::uintptr_t>(moved.data()), 100, lkey}}) == 0);
  REQUIRE(pair.a.post_send(8, {other.sge(0, 100)}) == 0);
  CHECK(pair.cq.take().status == IBV_WC_LOC_PROT_ERR);
  CHECK(pair.cq.take().status == IBV_WC_REM_OP_ERR);
}

TEST_CASE("a region that changes its PD belongs to the new one", "[mr]") {
  Device device;
  Memory memory(device, 100);
  ibv_pd* const other = ibv_alloc_pd(device.context);
  REQUIRE(ibv_rereg_mr(memory.mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0) == 0);
  CHECK(memory.mr->pd == other);
  CHECK(ibv_dealloc_pd(other) == EBUSY);
  CHECK(ibv_dealloc_pd(device.pd) == 0);
  device.pd = nullptr;
  CHECK(ibv_dereg_mr(memory.mr) == 0);
  memory.mr = nullptr;
  CHECK(ibv_dealloc_pd(other) == 0);
}

TEST_CASE("ibv_rereg_mr says what became of the region, and errno why", "[mr]") {
  Device device;
  Memory memory(device, 100);
  const auto refused = [&](int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
    errno = 0;
    const int value = ibv_rereg_mr(memory.mr, flags, pd, address, length, access);
    return std::pair(value, errno);
  };
  const auto input = std::pair<int, int>(IBV_REREG_MR_ERR_INPUT, EINVAL);
  CHECK(refused(1 << 9, nullptr, nullptr, 0, 0) == input);
  CHECK(refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 100, 0) == input);
  CHECK(refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory.bytes.data(), 0, 0) == input);
  CHECK(refused(IBV_REREG_MR_CHANGE_PD, device.pd, nullptr, 0, kLocalWrite) == input);
  const auto command = std::pair<int, int>(IBV_REREG_MR_ERR_CMD, EINVAL);
  CHECK(refused(IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0) == command);
  CHECK(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE) == command);
  CHECK(refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, reinterpret_cast<void*>(4096), 100, 0) ==
        std::pair<int, int>(IBV_REREG_MR_ERR_CMD, EFAULT));
  const Region null(ibv_alloc_null_mr(device.pd));
  CHECK(ibv_rereg_mr(null.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
}

TEST_CASE("a null region swallows the part of a message that nobody wants, and sends zeros", "[mr]") {
  Pair pair;
  const Region null(ibv_alloc_null_mr(pair.device.pd));
  CHECK(null.mr->addr == nullptr);
  CHECK(null.mr->length == SIZE_MAX);
  Memory into(pair.device, 8192);
  pair.transfer({pair.memory.sge(0, 6000)}, {into.sge(0, 10), {0x1000, 5000, null.mr->lkey}, into.sge(10, 990)});
  CHECK(std::equal(into.bytes.begin(), into.bytes.begin() + 10, pair.memory.bytes.begin()));
  CHECK(std::equal(into.bytes.begin() + 10, into.bytes.begin() + 1000, pair.memory.bytes.begin() + 5010));
  into.fill(1);
  pair.transfer({{0, 5000, null.mr->lkey}}, {into.sge(0, 5000)});
  CHECK(std::all_of(into.bytes.begin(), into.bytes.begin() + 5000, [](std::uint8_t byte) { return byte == 0; }));
}

TEST_CASE("device memory is zeroed, copied to and from in words, and part of messages by offset", "[mr][dm]") {
  Pair pair;
  const Dm dm(pair.device, 4096);
  const Region region(ibv_reg_dm_mr(pair.device.pd, dm.dm, 1024, 2048, kZeroBased | kLocalWrite));
  CHECK(region.mr->length == 2048);
  std::array<char, 16> text{};
  REQUIRE(ibv_memcpy_from_dm(text.data(), dm.dm, 1032, 16) == 0);
  CHECK(text == std::array<char, 16>{});
  const std::array<char, 16> words{"device memory.."};
  REQUIRE(ibv_memcpy_to_dm(dm.dm, 1032, words.data(), 16) == 0);
  Memory into(pair.device, 100);
  pair.transfer({{8, 16, region.mr->lkey}}, {into.sge(0, 16)});
  CHECK(std::string(into.bytes.begin(), into.bytes.begin() + 15) == "device memory..");
  pair.transfer({pair.memory.sge(0, 8)}, {{2040, 8, region.mr->lkey}});
  REQUIRE(ibv_memcpy_from_dm(text.data(), dm.dm, 1024 + 2040, 8) == 0);
  CHECK(std::equal(text.begin(), text.begin() + 8, reinterpret_cast<const char*>(pair.memory.bytes.data())));
}

TEST_CASE("device memory refuses what its size, its words and its rights do not allow", "[mr][dm]") {
  Device device;
  const Dm dm(device, 100);
  std::array<char, 128> text{};
  CHECK(ibv_memcpy_to_dm(dm.dm, 3, text.data(), 4) == EINVAL);
  CHECK(ibv_memcpy_to_dm(dm.dm, 4, text.data(), 3) == EINVAL);
  CHECK(ibv_memcpy_to_dm(dm.dm, 104, text.data(), 4) == EFAULT);
  CHECK(ibv_memcpy_from_dm(text.data(), dm.dm, 0, 104) == EFAULT);
  const auto refused = [&](std::uint64_t offset, std::size_t length, int access) {
    errno = 0;
    CHECK(ibv_reg_dm_mr(device.pd, dm.dm, offset, length, static_cast<unsigned>(access)) == nullptr);
    return errno;
  };
  CHECK(refused(0, 104, kZeroBased | kLocalWrite) == EINVAL);
  CHECK(refused(96, 8, kZeroBased | kLocalWrite) == EINVAL);
  CHECK(refused(0, 100, kLocalWrite) == EINVAL);
  CHECK(refused(0, 100, kZeroBased | kOnDemand) == EINVAL);
  CHECK(refused(0, 100, kZeroBased | IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  {
    const Region region(ibv_reg_dm_mr(device.pd, dm.dm, 0, 100, static_cast<unsigned>(kZeroBased)));
    CHECK(ibv_free_dm(dm.dm) == EBUSY);
    const Region empty(ibv_reg_dm_mr(device.pd, dm.dm, 0, 0, static_cast<unsigned>(kZeroBased)));
  }
  ibv_alloc_dm_attr attr{};
  CHECK(ibv_alloc_dm(device.context, &attr) == nullptr);
  attr.length = (std::size_t{1} << 20) + 1;
  CHECK(ibv_alloc_dm(device.context, &attr) == nullptr);
  attr = {64, 40, 0};
  CHECK(ibv_alloc_dm(device.context, &attr) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("regions on demand may be mapped later, and one may be all of the address space", "[mr][odp]") {
  Pair pair;
  constexpr std::size_t kBytes = 8192;
  void* const pages = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  const bool is_implicit = GENERATE(false, true);
  const int access = kOnDemand | kLocalWrite;
  const Region region(is_implicit ? ibv_reg_mr(pair.device.pd, nullptr, SIZE_MAX, access)
                                  : ibv_reg_mr(pair.device.pd, pages, kBytes, access));
  REQUIRE(mprotect(pages, kBytes, PROT_READ | PROT_WRITE) == 0);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(pages), kBytes, region.mr->lkey};
  CHECK(ibv_advise_mr(pair.device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) == 0);
  pair.transfer({pair.memory.sge(0, kBytes)}, {sge});
  CHECK(std::memcmp(pages, pair.memory.bytes.data(), kBytes) == 0);
  munmap(pages, kBytes);
  CHECK(ibv_advise_mr(pair.device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) == EFAULT);
  CHECK(ibv_advise_mr(pair.device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1) == 0);
  CHECK(ibv_advise_mr(pair.device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) == 0);
}

TEST_CASE("advice is refused for what is not on demand, and where it makes no sense", "[mr][odp]") {
  Device device;
  Memory memory(device, 100);
  std::array<char, 100> bytes{};
  const Region read_only(ibv_reg_mr(device.pd, bytes.data(), bytes.size(), kOnDemand));
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(bytes.data()), 100, read_only.mr->lkey};
  ibv_sge pinned = memory.sge(0, 100);
  const auto prefetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
  CHECK(ibv_advise_mr(device.pd, prefetch, 0, &sge, 1) == 0);
  CHECK(ibv_advise_mr(device.pd, prefetch, 0, &pinned, 1) == ENOENT);
  CHECK(ibv_advise_mr(device.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1) == EPERM);
  CHECK(ibv_advise_mr(device.pd, prefetch, 2, &sge, 1) == EINVAL);
  CHECK(ibv_advise_mr(device.pd, prefetch, 0, &sge, 0) == EINVAL);
  CHECK(ibv_advise_mr(device.pd, static_cast<ibv_advise_mr_advice>(77), 0, &sge, 1) == EOPNOTSUPP);
  ++sge.length;
  CHECK(ibv_advise_mr(device.pd, prefetch, 0, &sge, 1) == EFAULT);
}

TEST_CASE("hints are taken, and what is not memory of ours is refused", "[mr]") {
  Device device;
  std::array<char, 100> bytes{};
  const unsigned every_hint = IBV_ACCESS_OPTIONAL_RANGE;
  {
    const Region relaxed(ibv_reg_mr_iova2(device.pd, bytes.data(), bytes.size(), 0x5000, every_hint));
    CHECK(relaxed.mr->addr == bytes.data());
  }
  errno = 0;
  CHECK(ibv_reg_dmabuf_mr(device.pd, 0, 100, 0, 1, kLocalWrite) == nullptr);
  CHECK(errno == EOPNOTSUPP);
}

TEST_CASE("the device says what on-demand paging and device memory it has", "[mr]") {
  Device device;
  ibv_device_attr_ex attr{};
  REQUIRE(ibv_query_device_ex(device.context, nullptr, &attr) == 0);
  CHECK(attr.odp_caps.general_caps == (IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT));
  CHECK(attr.odp_caps.per_transport_caps.rc_odp_caps ==
        (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
         IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV));
  CHECK(attr.max_dm_size == std::size_t{1} << 20);
}
