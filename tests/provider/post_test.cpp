// SPDX-License-Identifier: MIT
// Goal: what is posted to one queue pair arrives at the other, and what may not be posted is refused at once with the
// work request named: ibv_post_send(3), ibv_post_recv(3), rdma_post_recvv(3). Mistakes are in bad_input/.
// Method: two queue pairs of this process, over real sockets on the loopback interface.
#include <catch2/catch.hpp>
#include <cerrno>
#include <numeric>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

struct Pair {
  Pair() : send_cq(device), recv_cq(device), memory(device, 1 << 20), a(device, attr()), b(device, attr()) {
    a.connect(b);
    b.connect(a);
    memory.fill(3);
  }
  ibv_qp_init_attr attr() const { return rc_attr(send_cq.cq, recv_cq.cq); }

  Device device;
  Cq send_cq;
  Cq recv_cq;
  Memory memory;
  Qp a;
  Qp b;
};

}  // namespace

TEST_CASE("a message is scattered over the posted list, in order, and the context comes back in wr_id", "[post]") {
  Pair pair;
  Memory into(pair.device, 8192);
  constexpr std::size_t kLength = 3000;  // three packets of 1024 bytes
  REQUIRE(pair.b.post_recv(0xfeedface12345678, {into.sge(0, 1), into.sge(4000, 2000), into.sge(100, 1500)}) == 0);
  REQUIRE(pair.a.post_send(7, {pair.memory.sge(0, 1000), pair.memory.sge(1000, kLength - 1000)}) == 0);

  const ibv_wc sent = pair.send_cq.take();
  CHECK(sent.status == IBV_WC_SUCCESS);
  CHECK(sent.wr_id == 7);
  CHECK(sent.opcode == IBV_WC_SEND);
  const ibv_wc received = pair.recv_cq.take();
  CHECK(received.status == IBV_WC_SUCCESS);
  CHECK(received.wr_id == 0xfeedface12345678);
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.byte_len == kLength);
  CHECK(received.qp_num == pair.b.qp->qp_num);
  std::vector<std::uint8_t> joined(into.bytes.begin(), into.bytes.begin() + 1);
  joined.insert(joined.end(), into.bytes.begin() + 4000, into.bytes.begin() + 6000);
  joined.insert(joined.end(), into.bytes.begin() + 100, into.bytes.begin() + 100 + (kLength - 2001));
  CHECK(joined == std::vector<std::uint8_t>(pair.memory.bytes.begin(), pair.memory.bytes.begin() + kLength));
  CHECK(into.bytes[100 + (kLength - 2001)] == 0);  // and not a byte more
}

TEST_CASE("messages of all sizes arrive whole", "[post]") {
  Pair pair;
  const std::size_t length = GENERATE(0u, 1u, 1023u, 1024u, 1025u, 65536u, 1u << 20);
  Memory into(pair.device, (1 << 20) + 1);
  REQUIRE(pair.b.post_recv(1, {into.sge(0, length)}) == 0);
  REQUIRE(pair.a.post_send(2, {pair.memory.sge(0, length)}) == 0);
  CHECK(pair.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(pair.recv_cq.take().byte_len == length);
  CHECK(std::equal(into.bytes.begin(), into.bytes.begin() + static_cast<std::ptrdiff_t>(length),
                   pair.memory.bytes.begin()));
  CHECK(into.bytes[length] == 0);
}

TEST_CASE("inline data is read when it is posted, from memory that is not registered", "[post]") {
  Pair pair;
  std::string first = "gathered ";
  std::string second = "inline";
  REQUIRE(pair.b.post_recv(1, {pair.memory.sge(0, 100)}) == 0);
  const std::vector<ibv_sge> list{
      {reinterpret_cast<std::uint64_t>(first.data()), static_cast<std::uint32_t>(first.size()), 0},
      {reinterpret_cast<std::uint64_t>(second.data()), static_cast<std::uint32_t>(second.size()), 0}};
  REQUIRE(pair.a.post_send(2, list, IBV_SEND_INLINE | IBV_SEND_SIGNALED) == 0);
  first = second = "overwritten";
  CHECK(pair.send_cq.take().status == IBV_WC_SUCCESS);
  CHECK(pair.recv_cq.take().byte_len == 15);
  CHECK(std::string(pair.memory.bytes.begin(), pair.memory.bytes.begin() + 15) == "gathered inline");
}

TEST_CASE("an RDMA write and a read reach the peer's memory without its help", "[post]") {
  Pair pair;
  Memory remote(pair.device, 4096);
  ibv_sge list = pair.memory.sge(0, 4000);
  ibv_send_wr wr{};
  wr.sg_list = &list;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(remote.bytes.data());
  wr.wr.rdma.rkey = remote.mr->rkey;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(pair.a.qp, &wr, &bad) == 0);
  CHECK(pair.send_cq.take().opcode == IBV_WC_RDMA_WRITE);
  CHECK(std::equal(remote.bytes.begin(), remote.bytes.begin() + 4000, pair.memory.bytes.begin()));

  list = pair.memory.sge(8192, 4000);
  std::fill(pair.memory.bytes.begin() + 8192, pair.memory.bytes.begin() + 12192, std::uint8_t{0});
  wr.opcode = IBV_WR_RDMA_READ;
  REQUIRE(ibv_post_send(pair.a.qp, &wr, &bad) == 0);
  const ibv_wc read = pair.send_cq.take();
  CHECK(read.status == IBV_WC_SUCCESS);
  CHECK(read.opcode == IBV_WC_RDMA_READ);
  CHECK(std::equal(remote.bytes.begin(), remote.bytes.begin() + 4000, pair.memory.bytes.begin() + 8192));
}

TEST_CASE("the first work request that is not taken is named, and those before it are posted", "[post]") {
  Pair pair;
  ibv_sge list = pair.memory.sge(0, 8);
  std::array<ibv_send_wr, 3> wrs{};
  for (std::size_t i = 0; i < wrs.size(); ++i) {
    wrs[i].wr_id = i;
    wrs[i].next = i + 1 < wrs.size() ? &wrs[i + 1] : nullptr;
    wrs[i].sg_list = &list;
    wrs[i].num_sge = 1;
    wrs[i].opcode = IBV_WR_SEND;
    wrs[i].send_flags = IBV_SEND_SIGNALED;
  }
  int expected = EINVAL;
  std::array<ibv_sge, 5> too_many;
  too_many.fill(list);
  SECTION("too many entries") {
    wrs[1].sg_list = too_many.data();
    wrs[1].num_sge = static_cast<int>(too_many.size());
    expected = ENOMEM;
  }
  SECTION("no number of entries at all") {
    wrs[1].num_sge = -1;
  }
  SECTION("no such flag") {
    wrs[1].send_flags |= 1u << 15;
  }
  SECTION("no such opcode") {
    wrs[1].opcode = static_cast<ibv_wr_opcode>(99);
  }
  SECTION("inline data too long") {
    wrs[1].send_flags |= IBV_SEND_INLINE;
    static std::array<char, 4096> data;
    static ibv_sge long_list;
    long_list = {reinterpret_cast<std::uint64_t>(data.data()), data.size(), 0};
    wrs[1].sg_list = &long_list;
    expected = ENOMEM;
  }
  REQUIRE(pair.b.post_recv(1, {pair.memory.sge(4096, 8)}) == 0);
  ibv_send_wr* bad = nullptr;
  CHECK(ibv_post_send(pair.a.qp, wrs.data(), &bad) == expected);
  CHECK(bad == &wrs[1]);
  CHECK(pair.send_cq.take().wr_id == 0);
  CHECK(pair.send_cq.is_empty());
}

TEST_CASE("a message longer than the list fails both ends, with the status of each", "[post]") {
  Pair pair;
  REQUIRE(pair.b.post_recv(1, {pair.memory.sge(0, 10)}) == 0);
  REQUIRE(pair.b.post_recv(2, {pair.memory.sge(0, 10)}) == 0);
  REQUIRE(pair.a.post_send(3, {pair.memory.sge(4096, 100)}) == 0);
  REQUIRE(pair.a.post_send(4, {pair.memory.sge(4096, 100)}) == 0);
  CHECK(pair.recv_cq.take().status == IBV_WC_LOC_LEN_ERR);
  CHECK(pair.recv_cq.take().status == IBV_WC_WR_FLUSH_ERR);
  CHECK(pair.send_cq.take().status == IBV_WC_REM_INV_REQ_ERR);
  CHECK(pair.send_cq.take().status == IBV_WC_WR_FLUSH_ERR);
}

TEST_CASE("a receive into a region that is gone is LOC_PROT_ERR, not an errno", "[post]") {
  Pair pair;
  {
    Memory gone(pair.device, 64);
    REQUIRE(pair.b.post_recv(1, {gone.sge(0, 64)}) == 0);
  }
  REQUIRE(pair.a.post_send(2, {pair.memory.sge(0, 64)}) == 0);
  CHECK(pair.recv_cq.take().status == IBV_WC_LOC_PROT_ERR);
}
