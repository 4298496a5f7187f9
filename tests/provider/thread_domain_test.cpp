// SPDX-License-Identifier: MIT
// Goal: a parent domain serves wherever a protection domain does and is the same one to every check; nothing that is in
// use can be taken away. Method: the public verbs API.
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

ibv_td* make_td(Device& device) {
  ibv_td_init_attr attr{};
  ibv_td* const td = ibv_alloc_td(device.context, &attr);
  REQUIRE(td != nullptr);
  return td;
}

ibv_pd* make_parent(Device& device, ibv_pd* pd, ibv_td* td = nullptr) {
  ibv_parent_domain_init_attr attr{};
  attr.pd = pd;
  attr.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(device.context, &attr);
  REQUIRE(parent != nullptr);
  return parent;
}

int errno_of_creation(Device& device, ibv_parent_domain_init_attr attr) {
  errno = 0;
  CHECK(ibv_alloc_parent_domain(device.context, &attr) == nullptr);
  return errno;
}

void* never_called_alloc(ibv_pd*, void*, size_t, size_t, uint64_t) {
  FAIL("the program's allocator was called");
  return nullptr;
}
void never_called_free(ibv_pd*, void*, void*, uint64_t) {
  FAIL("the program's allocator was called");
}

}  // namespace

TEST_CASE("a thread domain stays while a parent domain uses it, a PD while a parent domain stands for it", "[td]") {
  Device device;
  ibv_td* const td = make_td(device);
  CHECK(td->context == device.context);
  ibv_pd* const parent = make_parent(device, device.pd, td);
  CHECK(parent->context == device.context);
  CHECK(ibv_dealloc_td(td) == EBUSY);
  CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  CHECK(ibv_dealloc_pd(parent) == 0);
  CHECK(ibv_dealloc_td(td) == 0);
}

TEST_CASE("a queue pair of a parent domain uses memory of its protection domain, and the other way round", "[td]") {
  Device device;
  ibv_pd* const parent = make_parent(device, device.pd);
  {
    Cq cq(device);
    Memory memory(device, 64);  // of the protection domain
    std::vector<std::uint8_t> bytes(64, 7);
    const int access = IBV_ACCESS_LOCAL_WRITE;
    ibv_mr* const mr = ibv_reg_mr(parent, bytes.data(), bytes.size(), access);
    REQUIRE(mr != nullptr);
    CHECK(mr->pd == parent);
    CHECK(ibv_dealloc_pd(parent) == EBUSY);
    ibv_qp_init_attr attr = rc_attr(cq.cq, cq.cq);
    Qp of_parent(device, ibv_create_qp(parent, &attr));
    Qp of_pd(device, rc_attr(cq.cq, cq.cq));
    CHECK(of_parent.qp->pd == parent);
    of_parent.connect(of_pd);
    of_pd.connect(of_parent);
    REQUIRE(of_parent.post_recv(1, {memory.sge(0, 64)}) == 0);
    REQUIRE(of_pd.post_send(2, {{reinterpret_cast<std::uint64_t>(bytes.data()), 64, mr->lkey}}) == 0);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
    CHECK(cq.take().status == IBV_WC_SUCCESS);
    CHECK(memory.bytes == bytes);
    CHECK(ibv_dereg_mr(mr) == 0);
  }
  CHECK(ibv_dealloc_pd(parent) == 0);
}

TEST_CASE("a parent domain of a parent domain stands for the same protection domain", "[td]") {
  Device device;
  ibv_pd* const first = make_parent(device, device.pd);
  ibv_pd* const second = make_parent(device, first);
  CHECK(ibv_dealloc_pd(first) == 0);
  CHECK(ibv_dealloc_pd(device.pd) == EBUSY);
  CHECK(ibv_dealloc_pd(second) == 0);
}

TEST_CASE("the program's allocators are accepted; our queues are no memory that a device reads", "[td]") {
  Device device;
  ibv_parent_domain_init_attr attr{};
  attr.pd = device.pd;
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
  attr.alloc = never_called_alloc;
  attr.free = never_called_free;
  ibv_pd* const parent = ibv_alloc_parent_domain(device.context, &attr);
  REQUIRE(parent != nullptr);
  {
    Cq cq(device);
    ibv_qp_init_attr qp_attr = rc_attr(cq.cq, cq.cq);
    const Qp qp(device, ibv_create_qp(parent, &qp_attr));
  }
  CHECK(ibv_dealloc_pd(parent) == 0);
}

TEST_CASE("what is no thread domain or parent domain is refused", "[td]") {
  Device device;
  Device other;
  ibv_td_init_attr td_attr{1};
  errno = 0;
  CHECK(ibv_alloc_td(device.context, &td_attr) == nullptr);
  CHECK(errno == EINVAL);

  ibv_parent_domain_init_attr attr{};
  CHECK(errno_of_creation(device, attr) == EINVAL);  // no pd
  attr.pd = other.pd;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr.pd = device.pd;
  attr.comp_mask = 1u << 5;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr.comp_mask = 0;
  ibv_td* const td = make_td(other);
  attr.td = td;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  CHECK(ibv_dealloc_td(td) == 0);
}
