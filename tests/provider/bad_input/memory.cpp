// SPDX-License-Identifier: MIT
// Keys, ranges and rights of regions, here and at the peer: looked at when the message moves.
#include <cerrno>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

// a sends it; b has posted a receive of 64 bytes.
std::string send(Bench& bench, std::vector<ibv_sge> list) {
  REQUIRE(bench.b.post_recv(2, {bench.memory.sge(4096, 64)}) == 0);
  REQUIRE(bench.a.post_send(1, std::move(list)) == 0);
  return bench.completions(1, 0);
}

// a sends 8 bytes into this list.
std::string receive(Bench& bench, std::vector<ibv_sge> list) {
  REQUIRE(bench.b.post_recv(2, std::move(list)) == 0);
  REQUIRE(bench.a.post_send(1, {bench.memory.sge(0, 8)}) == 0);
  return bench.completions(1, 1);
}

ibv_sge with_key(ibv_sge sge, std::uint32_t key) {
  sge.lkey = key;
  return sge;
}

std::string remote(Bench& bench, ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t rkey) {
  bench.names.add("rkey", rkey);
  bench.names.add("address", address);
  REQUIRE(bench.post_remote(bench.a, opcode, address, rkey) == 0);
  return bench.completions(1, 0);
}

// While it lives, what is registered with the bench's device belongs to another PD than the queue pairs.
class OtherPd {
 public:
  explicit OtherPd(Bench& bench) : bench_(bench), kept_(bench.device.pd) {
    bench.device.pd = ibv_alloc_pd(bench.device.context);
    REQUIRE(bench.device.pd != nullptr);
  }
  ~OtherPd() {
    CHECK(ibv_dealloc_pd(bench_.device.pd) == 0);
    bench_.device.pd = kept_;
  }
  OtherPd(const OtherPd&) = delete;
  OtherPd& operator=(const OtherPd&) = delete;

 private:
  Bench& bench_;
  ibv_pd* const kept_;
};

}  // namespace

const std::vector<Mistake> kMistakesWithMemory{
    {"an lkey that is not registered, in the second SGE",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[1] (lkey 0x1234567, address {address}, 8 bytes): the key is not registered; "
      "completes with LOC_PROT_ERR"},
     [](Bench& bench) {
       const ibv_sge bad = with_key(bench.memory.sge(8, 8), 0x1234567);
       bench.names.add("address", bad.addr);
       return send(bench, {bench.memory.sge(0, 8), bad});
     }},
    {"a region that is no longer registered",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[0] (lkey {lkey}, address {address}, 8 bytes): the key is not registered; completes "
      "with LOC_PROT_ERR"},
     [](Bench& bench) {
       ibv_sge gone;
       {
         Memory memory(bench.device, 64);
         gone = memory.sge(0, 8);
       }
       bench.names.add("lkey", gone.lkey);
       bench.names.add("address", gone.addr);
       return send(bench, {gone});
     }},
    {"an rkey used as lkey",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[0] (lkey {rkey}, address {address}, 8 bytes): the key is of the other kind (an "
      "lkey and the rkey of a region differ); completes with LOC_PROT_ERR"},
     [](Bench& bench) {
       const ibv_sge bad = with_key(bench.memory.sge(0, 8), bench.memory.mr->rkey);
       bench.names.add("rkey", bad.lkey);
       bench.names.add("address", bad.addr);
       return send(bench, {bad});
     }},
    {"a range past the end of its region",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[0] (lkey {lkey}, address {address}, 8 bytes): the key covers a region that does "
      "not hold the whole range; completes with LOC_PROT_ERR"},
     [](Bench& bench) {
       const ibv_sge bad = bench.memory.sge(bench.memory.bytes.size() - 4, 8);
       bench.names.add("lkey", bad.lkey);
       bench.names.add("address", bad.addr);
       return send(bench, {bad});
     }},
    {"a region of another PD",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[0] (lkey {lkey}, address {address}, 8 bytes): the key belongs to another "
      "protection domain; completes with LOC_PROT_ERR"},
     [](Bench& bench) {
       const OtherPd other(bench);
       Memory memory(bench.device, 64);
       bench.names.add("lkey", memory.mr->lkey);
       bench.names.add("address", memory.sge(0, 8).addr);
       return send(bench, {memory.sge(0, 8)});
     }},
    {"a receive into a region without local write",
     "send REM_OP_ERR, recv LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: the peer could not complete the request (the memory of its receive or of its region may "
      "not be accessed)",
      "qp {b} recv wr_id 0x2: sge[0] (lkey {lkey}, address {address}, 64 bytes): the key was registered without the "
      "access right that this needs; completes with LOC_PROT_ERR, the sender gets REM_OP_ERR"},
     [](Bench& bench) {
       Memory memory(bench.device, 64, IBV_ACCESS_REMOTE_READ);
       bench.names.add("lkey", memory.mr->lkey);
       bench.names.add("address", memory.sge(0, 64).addr);
       return receive(bench, {memory.sge(0, 64)});
     }},
    {"a read into a region without local write",
     "send LOC_PROT_ERR",
     {"qp {a} send wr_id 0x1: sge[0] (lkey {lkey}, address {address}, 8 bytes): the key was registered without the "
      "access right that this needs; completes with LOC_PROT_ERR"},
     [](Bench& bench) {
       Memory memory(bench.device, 64, IBV_ACCESS_REMOTE_READ);
       ibv_sge into = memory.sge(0, 8);
       bench.names.add("lkey", into.lkey);
       bench.names.add("address", into.addr);
       ibv_send_wr wr{};
       wr.wr_id = 1;
       wr.sg_list = &into;
       wr.num_sge = 1;
       wr.opcode = IBV_WR_RDMA_READ;
       wr.wr.rdma = {.remote_addr = bench.memory.sge(0, 8).addr, .rkey = bench.memory.mr->rkey};
       ibv_send_wr* bad = nullptr;
       REQUIRE(ibv_post_send(bench.a.qp, &wr, &bad) == 0);
       return bench.completions(1, 0);
     }},
    {"an lkey sent as rkey",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received a write of 8 bytes at {address} with rkey {rkey}: the key is of the other kind (an lkey and "
      "the rkey of a region differ); the sender gets REM_ACCESS_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_RDMA_WRITE, bench.memory.sge(0, 8).addr, bench.memory.mr->lkey); }},
    {"an rkey that is not registered",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received a read of 8 bytes at {address} with rkey {rkey}: the key is not registered; the sender gets "
      "REM_ACCESS_ERR"},
     [](Bench& bench) { return remote(bench, IBV_WR_RDMA_READ, bench.memory.sge(0, 8).addr, 0x7654321); }},
    {"a remote range past the end of its region",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received a write of 8 bytes at {address} with rkey {rkey}: the key covers a region that does not hold "
      "the whole range; the sender gets REM_ACCESS_ERR"},
     [](Bench& bench) {
       return remote(bench, IBV_WR_RDMA_WRITE, bench.memory.sge(bench.memory.bytes.size() - 4, 8).addr,
                     bench.memory.mr->rkey);
     }},
    {"a remote region of another PD",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received a read of 8 bytes at {address} with rkey {rkey}: the key belongs to another protection "
      "domain; the sender gets REM_ACCESS_ERR"},
     [](Bench& bench) {
       const OtherPd other(bench);
       Memory memory(bench.device, 64);
       return remote(bench, IBV_WR_RDMA_READ, memory.sge(0, 8).addr, memory.mr->rkey);
     }},
    {"a region without remote write, written",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received a write of 8 bytes at {address} with rkey {rkey}: the key was registered without the access "
      "right that this needs; the sender gets REM_ACCESS_ERR"},
     [](Bench& bench) {
       Memory memory(bench.device, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
       return remote(bench, IBV_WR_RDMA_WRITE, memory.sge(0, 8).addr, memory.mr->rkey);
     }},
    {"a region without remote atomics, counted in",
     "send REM_ACCESS_ERR",
     {"qp {a} send wr_id 0x1: the peer refused access; check rkey, address range and the access flags of its region",
      "qp {b} received an atomic of 8 bytes at {address} with rkey {rkey}: the key was registered without the access "
      "right that this needs; the sender gets REM_ACCESS_ERR"},
     [](Bench& bench) {
       Memory memory(bench.device, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
       const auto aligned = (memory.sge(0, 8).addr + 7) & ~std::uint64_t{7};
       return remote(bench, IBV_WR_ATOMIC_FETCH_AND_ADD, aligned, memory.mr->rkey);
     }},
};

}  // namespace nicless::test
