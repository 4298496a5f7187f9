// SPDX-License-Identifier: MIT
// Making and destroying objects.
#include <sys/mman.h>

#include <cerrno>

#include "tests/provider/bad_input/mistakes.h"

namespace nicless::test {
namespace {

std::string create_qp(Bench& bench, ibv_qp_init_attr attr) {
  return Bench::refusal(ibv_create_qp(bench.device.pd, &attr));
}

// As numbers: ibv_reg_mr is a macro that mixes two enums.
std::string reg_mr(Bench& bench, void* address, std::size_t length, int access) {
  return Bench::refusal(ibv_reg_mr(bench.device.pd, address, length, access));
}

std::string create_ah(Bench& bench, int is_global, std::uint8_t sgid_index) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.is_global = static_cast<std::uint8_t>(is_global);
  attr.grh.sgid_index = sgid_index;
  return Bench::refusal(ibv_create_ah(bench.device.pd, &attr));
}

}  // namespace

const std::vector<Mistake> kMistakesWithObjects{
    {"a CQ of no entries",
     "EINVAL",
     {"ibv_create_cq: EINVAL, a completion queue holds 1 to 4194303 entries, not 0"},
     [](Bench& bench) { return Bench::refusal(ibv_create_cq(bench.device.context, 0, nullptr, nullptr, 0)); }},
    {"a completion vector that is not there",
     "EINVAL",
     {"ibv_create_cq: EINVAL, comp_vector must be below num_comp_vectors, which is 1"},
     [](Bench& bench) { return Bench::refusal(ibv_create_cq(bench.device.context, 1, nullptr, nullptr, 1000)); }},
    {"a queue pair deeper than max_qp_wr",
     "EINVAL",
     {"ibv_create_qp: EINVAL, cap.max_send_wr is 1048576, the device's limit is 32768"},
     [](Bench& bench) {
       ibv_qp_init_attr attr = attr_of(bench);
       attr.cap.max_send_wr = 1 << 20;
       return create_qp(bench, attr);
     }},
    {"lists longer than max_sge",
     "EINVAL",
     {"ibv_create_qp: EINVAL, cap.max_recv_sge is 1000, the device's limit is 32"},
     [](Bench& bench) {
       ibv_qp_init_attr attr = attr_of(bench);
       attr.cap.max_recv_sge = 1000;
       return create_qp(bench, attr);
     }},
    {"more inline data than there can be",
     "EINVAL",
     {"ibv_create_qp: EINVAL, cap.max_inline_data is 1048576, the device's limit is 1024"},
     [](Bench& bench) {
       ibv_qp_init_attr attr = attr_of(bench);
       attr.cap.max_inline_data = 1 << 20;
       return create_qp(bench, attr);
     }},
    {"a queue pair without a CQ",
     "EINVAL",
     {"ibv_create_qp: EINVAL, a queue pair needs a send_cq and a recv_cq"},
     [](Bench& bench) {
       ibv_qp_init_attr attr = attr_of(bench);
       attr.recv_cq = nullptr;
       return create_qp(bench, attr);
     }},
    {"a queue pair of objects of two contexts",
     "EINVAL",
     {"ibv_create_qp: EINVAL, the PD, the CQs and the SRQ belong to different contexts"},
     [](Bench& bench) {
       Device other;
       const Cq cq(other);
       ibv_qp_init_attr attr = attr_of(bench);
       attr.recv_cq = cq.cq;
       return create_qp(bench, attr);
     }},
    {"a queue pair of no type",
     "EINVAL",
     {"ibv_create_qp: EINVAL, qp_type is no value of enum ibv_qp_type"},
     [](Bench& bench) { return create_qp(bench, attr_of(bench, static_cast<ibv_qp_type>(77))); }},
    {"remote write without local write",
     "EINVAL",
     {"ibv_reg_mr: EINVAL, IBV_ACCESS_REMOTE_WRITE and IBV_ACCESS_REMOTE_ATOMIC need IBV_ACCESS_LOCAL_WRITE beside "
      "them"},
     [](Bench& bench) { return reg_mr(bench, bench.memory.bytes.data(), 8, IBV_ACCESS_REMOTE_WRITE); }},
    {"an access flag that is none",
     "EINVAL",
     {"ibv_reg_mr: EINVAL, access bits 0x80000 are not known"},
     [](Bench& bench) { return reg_mr(bench, bench.memory.bytes.data(), 8, 1 << 19); }},
    {"memory that is not mapped",
     "EFAULT",
     {"ibv_reg_mr: EFAULT, not all of the 4096 bytes at {address} is mapped and readable"},
     [](Bench& bench) {
       void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       REQUIRE(page != MAP_FAILED);
       REQUIRE(munmap(page, 4096) == 0);
       bench.names.add("address", reinterpret_cast<std::uintptr_t>(page));
       return reg_mr(bench, page, 4096, 0);
     }},
    {"memory that may not be written, registered for writing",
     "EFAULT",
     {"ibv_reg_mr: EFAULT, not all of the 4096 bytes at {address} is mapped and writable"},
     [](Bench& bench) {
       void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       REQUIRE(page != MAP_FAILED);
       bench.names.add("address", reinterpret_cast<std::uintptr_t>(page));
       const std::string answer = reg_mr(bench, page, 4096, IBV_ACCESS_LOCAL_WRITE);
       munmap(page, 4096);
       return answer;
     }},
    {"an address handle without a GID",
     "EINVAL",
     {"ibv_create_ah: EINVAL, ah_attr.is_global must be 1: RoCE addresses are GIDs (a program's -g option; "
      "without one, nicless run --lids)"},
     [](Bench& bench) { return create_ah(bench, 0, 0); }},
    {"an address handle of a GID that is not there",
     "EINVAL",
     {"ibv_create_ah: EINVAL, there is no address at sgid_index 200; `nicless devices` lists them"},
     [](Bench& bench) { return create_ah(bench, 1, 200); }},
    {"a PD destroyed before what belongs to it",
     "EBUSY",
     {"ibv_dealloc_pd: EBUSY, still in use, objects that belong to it (MR, MW, SRQ, QP, AH, CQ, parent domain): 3"},
     [](Bench& bench) { return Bench::errno_name(ibv_dealloc_pd(bench.device.pd)); }},
    {"a CQ destroyed before its queue pairs",
     "EBUSY",
     {"ibv_destroy_cq: EBUSY, queue pairs or XRC SRQs still complete into this CQ"},
     [](Bench& bench) { return Bench::errno_name(ibv_destroy_cq(bench.send_cq.cq)); }},
    {"a channel destroyed before its CQs",
     "EBUSY",
     {"ibv_destroy_comp_channel: EBUSY, still in use, CQs with it: 1"},
     [](Bench& bench) {
       ibv_comp_channel* const channel = ibv_create_comp_channel(bench.device.context);
       std::string answer;
       {
         const Cq cq(bench.device, 1, channel);
         answer = Bench::errno_name(ibv_destroy_comp_channel(channel));
       }
       REQUIRE(ibv_destroy_comp_channel(channel) == 0);
       return answer;
     }},
    {"an SRQ destroyed before its queue pairs",
     "EBUSY",
     {"ibv_destroy_srq: EBUSY, still in use, queue pairs that receive from it: 1"},
     [](Bench& bench) {
       ibv_srq_init_attr srq_attr{nullptr, {4, 1, 0}};
       ibv_srq* const srq = ibv_create_srq(bench.device.pd, &srq_attr);
       std::string answer;
       {
         ibv_qp_init_attr attr = attr_of(bench);
         attr.srq = srq;
         const Qp qp(bench.device, attr);
         answer = Bench::errno_name(ibv_destroy_srq(srq));
       }
       REQUIRE(ibv_destroy_srq(srq) == 0);
       return answer;
     }},
};

}  // namespace nicless::test
