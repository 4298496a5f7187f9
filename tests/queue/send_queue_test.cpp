// SPDX-License-Identifier: MIT
// Goal: a send queue owns what was posted, checks what hardware checks, completes what must complete and gives room
// back when completions are polled. Method: post values, compare the stored requests, the completions and the errors.
#include "queue/send_queue.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/queue/queue_fixture.h"

namespace nicless::queue {
namespace {

constexpr Qpn kQpn{0x1234};

struct SqFixture : CqFixture {
  explicit SqFixture(SendQueue::Limits limits = {.depth = 4, .sge_max = 3, .inline_max = 16}) : sq(limits, cq, kQpn) {}

  Result<void> post(std::uint64_t wr_id, bool signaled = true) {
    return sq.post({.wr_id = wr_id, .signaled = signaled});
  }
  Wc wc(std::uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS, ibv_wc_opcode opcode = IBV_WC_SEND) const {
    return {.wr_id = wr_id, .status = status, .opcode = opcode, .qp_num = kQpn.value()};
  }

  SendQueue sq;
};

TEST_CASE("a posted request is a copy, its list included", "[queue][sq]") {
  SqFixture f;
  std::vector<Sge> list{{.addr = 100, .length = 10, .lkey = LKey{7}}, {.addr = 200, .length = 20, .lkey = LKey{8}}};
  const std::vector<Sge> original = list;
  REQUIRE(f.sq.post({.wr_id = 5,
                     .opcode = SendOpcode::WriteImm,
                     .signaled = false,
                     .solicited = true,
                     .fence = true,
                     .imm_or_key = 99,
                     .rkey = RKey{3},
                     .remote_addr = 0x1000,
                     .sges = list}));
  list.assign(2, Sge{});
  const Wqe& stored = f.sq.at(0);
  CHECK(stored.wr_id == 5);
  CHECK(stored.opcode == SendOpcode::WriteImm);
  CHECK_FALSE(stored.signaled);
  CHECK(stored.solicited);
  CHECK(stored.fence);
  CHECK(stored.imm_or_key == 99);
  CHECK(stored.remote_addr == 0x1000);
  CHECK(stored.rkey == RKey{3});
  CHECK(std::vector<Sge>(stored.sges.begin(), stored.sges.end()) == original);
  CHECK(stored.length == 30);
}

TEST_CASE("inline data is copied, and its list is not kept", "[queue][sq]") {
  SqFixture f;
  std::vector<std::byte> data(16, std::byte{0x5a});
  REQUIRE(f.sq.post({.wr_id = 1, .has_inline_data = true, .inline_data = data}));
  data.assign(16, std::byte{});
  REQUIRE(f.sq.post({.wr_id = 2, .has_inline_data = true, .inline_data = data}));
  const Wqe& stored = f.sq.at(0);
  CHECK(stored.sges.empty());
  CHECK(stored.length == 16);
  CHECK(std::vector<std::byte>(stored.inline_data.begin(), stored.inline_data.end()) ==
        std::vector<std::byte>(16, std::byte{0x5a}));
}

TEST_CASE("what hardware refuses at post time is refused with its errno and leaves the queue as it was",
          "[queue][sq]") {
  SqFixture f;
  const std::vector<Sge> four(4);
  const std::vector<std::byte> seventeen(17);
  const std::vector<Sge> too_long{{.length = 0x8000'0000}, {.length = 1}};
  CHECK(errno_of(f.sq.post({.sges = four})) == ENOMEM);
  CHECK(errno_of(f.sq.post({.has_inline_data = true, .inline_data = seventeen})) == ENOMEM);
  CHECK(errno_of(f.sq.post({.sges = too_long})) == EINVAL);
  CHECK(f.sq.posted() == 0);
  CHECK(f.sq.empty());
}

TEST_CASE("2^31 bytes, no SGEs and empty inline data are all legal messages", "[queue][sq]") {
  SqFixture f;
  const std::vector<Sge> longest{{.length = 0x7fff'ffff}, {.length = 1}};
  CHECK(f.sq.post({.sges = longest}));
  CHECK(f.sq.post({}));
  CHECK(f.sq.post({.has_inline_data = true}));
  CHECK(f.sq.at(0).length == kMessageBytesMax);
  CHECK(f.sq.at(1).length == 0);
  CHECK(f.sq.at(2).length == 0);
}

TEST_CASE("signalled requests complete in order, unsignalled ones silently", "[queue][sq]") {
  SqFixture f;
  REQUIRE(f.post(1));
  REQUIRE(f.post(2, false));
  REQUIRE(f.post(3));
  for (int i = 0; i < 3; ++i) f.sq.retire(WcStatus::Success);
  CHECK(f.poll_all() == std::vector{f.wc(1), f.wc(3)});
  CHECK(f.sq.empty());
  CHECK(f.sq.retired() == 3);
}

TEST_CASE("a queue pair made with sq_sig_all completes everything", "[queue][sq]") {
  SqFixture f({.depth = 4, .sge_max = 1, .inline_max = 0, .signal_all = true});
  REQUIRE(f.post(1, false));
  CHECK(f.sq.at(0).signaled);
  f.sq.retire(WcStatus::Success);
  CHECK(f.poll_all() == std::vector{f.wc(1)});
}

TEST_CASE("an unsignalled request that fails completes", "[queue][sq]") {
  SqFixture f;
  REQUIRE(f.post(1, false));
  f.sq.retire(WcStatus::RetryExcErr);
  CHECK(f.poll_all() == std::vector{f.wc(1, IBV_WC_RETRY_EXC_ERR)});
}

TEST_CASE("the completion's opcode says what was done", "[queue][sq]") {
  using Case = std::pair<SendOpcode, ibv_wc_opcode>;
  const auto [posted, completed] =
      GENERATE(Case{SendOpcode::Write, IBV_WC_RDMA_WRITE}, Case{SendOpcode::WriteImm, IBV_WC_RDMA_WRITE},
               Case{SendOpcode::Send, IBV_WC_SEND}, Case{SendOpcode::SendImm, IBV_WC_SEND},
               Case{SendOpcode::SendInv, IBV_WC_SEND}, Case{SendOpcode::Read, IBV_WC_RDMA_READ},
               Case{SendOpcode::CompareSwap, IBV_WC_COMP_SWAP}, Case{SendOpcode::FetchAdd, IBV_WC_FETCH_ADD},
               Case{SendOpcode::LocalInv, IBV_WC_LOCAL_INV}, Case{SendOpcode::BindMw, IBV_WC_BIND_MW});
  SqFixture f;
  REQUIRE(f.sq.post({.wr_id = 1, .opcode = posted}));
  f.sq.retire(WcStatus::Success);
  CHECK(f.poll_all() == std::vector{f.wc(1, IBV_WC_SUCCESS, completed)});
}

TEST_CASE("a read's completion says how many bytes came in, an error's what the vendor says", "[queue][sq]") {
  SqFixture f;
  REQUIRE(f.sq.post({.wr_id = 1, .opcode = SendOpcode::Read}));
  f.sq.retire(WcStatus::LocProtErr, 4096, 81);
  ibv_wc wc;
  REQUIRE(f.cq.poll({&wc, 1}) == 1);
  CHECK(wc.byte_len == 4096);
  CHECK(wc.vendor_err == 81);
}

TEST_CASE("room comes back when a completion is polled, not when a request retires", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i));
  CHECK(errno_of(f.post(4)) == ENOMEM);
  f.sq.retire(WcStatus::Success);
  CHECK(errno_of(f.post(4)) == ENOMEM);
  CHECK(f.poll_all() == std::vector{f.wc(0)});
  CHECK(f.post(4));
  CHECK(errno_of(f.post(5)) == ENOMEM);
}

TEST_CASE("a signalled completion gives back the room of the unsignalled ones before it", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i, i == 2));
  for (int i = 0; i < 4; ++i) f.sq.retire(WcStatus::Success);
  CHECK(f.poll_all() == std::vector{f.wc(2)});
  for (std::uint64_t i = 4; i < 7; ++i) CHECK(f.post(i));
  CHECK(errno_of(f.post(7)) == ENOMEM);
}

TEST_CASE("a queue full of unsignalled requests stays full and says so", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i, false));
  for (int i = 0; i < 4; ++i) f.sq.retire(WcStatus::Success);
  const auto refused = f.post(4);
  REQUIRE(errno_of(refused) == ENOMEM);
  CHECK(refused.error().why ==
        "no room in the send queue: it holds 4 work requests, 4 of them unsignalled; room comes back only when the "
        "completion of a signalled one is polled, so this queue stays full");
}

TEST_CASE("a full queue says how many of its requests are unsignalled", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i, i == 0));
  f.sq.retire(WcStatus::Success);
  REQUIRE(f.poll_all().size() == 1);
  REQUIRE(f.post(4));
  const auto refused = f.post(5);
  REQUIRE(errno_of(refused) == ENOMEM);
  CHECK(refused.error().why ==
        "no room in the send queue: it holds 4 work requests, 3 of them unsignalled; poll the completion of a "
        "signalled one to make room");
}

TEST_CASE("a flush completes all that is left, in order, and its completions give room back", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i, i == 3));
  f.sq.retire(WcStatus::Success);
  f.sq.flush();
  CHECK(f.sq.empty());
  CHECK(f.poll_all() ==
        std::vector{f.wc(1, IBV_WC_WR_FLUSH_ERR), f.wc(2, IBV_WC_WR_FLUSH_ERR), f.wc(3, IBV_WC_WR_FLUSH_ERR)});
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(f.post(i));
}

TEST_CASE("a reset forgets requests and completions, and the queue has all its room", "[queue][sq]") {
  SqFixture f;
  for (std::uint64_t i = 0; i < 4; ++i) REQUIRE(f.post(i, i == 1));
  f.sq.retire(WcStatus::Success);
  f.sq.retire(WcStatus::Success);
  f.sq.reset();
  CHECK(f.sq.empty());
  CHECK(f.poll_all().empty());
  for (std::uint64_t i = 10; i < 14; ++i) CHECK(f.post(i));
  CHECK(errno_of(f.post(14)) == ENOMEM);
  f.sq.retire(WcStatus::Success);
  CHECK(f.poll_all() == std::vector{f.wc(10)});
}

TEST_CASE("slots are used again in order, whatever the depth", "[queue][sq]") {
  const std::uint32_t depth = GENERATE(1u, 2u, 3u, 5u, 8u);
  SqFixture f({.depth = depth, .sge_max = 1, .inline_max = 8});
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Sge sge{.addr = i, .length = 1, .lkey = LKey{1}};
    REQUIRE(f.sq.post({.wr_id = i, .sges = {&sge, 1}}));
    REQUIRE(f.sq.at(i).sges[0] == sge);
    if (i + 1 >= depth) {
      f.sq.retire(WcStatus::Success);
      REQUIRE(f.poll_all() == std::vector{f.wc(i + 1 - depth)});
    }
  }
}

TEST_CASE("a queue made for no requests takes none", "[queue][sq]") {
  SqFixture f({.depth = 0, .sge_max = 0, .inline_max = 0});
  CHECK(errno_of(f.post(1)) == ENOMEM);
}

TEST_CASE("a destroyed send queue leaves no completion behind", "[queue][sq]") {
  CqFixture f;
  {
    SendQueue sq({.depth = 2, .sge_max = 1}, f.cq, kQpn);
    REQUIRE(sq.post({.wr_id = 1}));
    sq.retire(WcStatus::Success);
  }
  CHECK(f.poll_all().empty());
}

}  // namespace
}  // namespace nicless::queue
