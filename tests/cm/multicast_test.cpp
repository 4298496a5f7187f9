// SPDX-License-Identifier: MIT
// Goal: ids join and leave multicast groups as the man pages say, and hear what is sent to them, and only then. Method:
// the public interface of the built libraries over loopback; each case has a group of its own.
#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

#include "tests/cm/rdma_fixture.h"
#include "tests/support/asleep.h"

namespace nicless::cm::test {
namespace {

rdma_cm_join_mc_attr_ex how(sockaddr_storage& group, std::uint32_t flags) {
  rdma_cm_join_mc_attr_ex attr{};
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = flags;
  attr.addr = as_sockaddr(group);
  return attr;
}

// A datagram id at 127.0.0.1 with a queue pair, and room for one message.
struct Member {
  explicit Member(Channel* on = nullptr) : channel(on) {
    REQUIRE(rdma_create_id(on == nullptr ? nullptr : on->get(), &id, nullptr, RDMA_PS_UDP) == 0);
    sockaddr_storage here = ipv4("127.0.0.1", 0);
    REQUIRE(rdma_bind_addr(id, as_sockaddr(here)) == 0);
    ibv_qp_init_attr attr = small_qp(IBV_QPT_UD);
    REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
    mr = rdma_reg_msgs(id, buffer, sizeof buffer);
    REQUIRE(mr != nullptr);
    REQUIRE(rdma_post_recv(id, nullptr, buffer, sizeof buffer, mr) == 0);
  }
  ~Member() {
    if (ah != nullptr) ibv_destroy_ah(ah);
    rdma_dereg_mr(mr);
    destroy(id);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Seen join(sockaddr_storage group, std::uint32_t flags = RDMA_MC_JOIN_FLAG_FULLMEMBER, void* context = nullptr) {
    rdma_cm_join_mc_attr_ex attr = how(group, flags);
    REQUIRE(rdma_join_multicast_ex(id, &attr, context) == 0);
    const Seen joined = channel->next(RDMA_CM_EVENT_MULTICAST_JOIN);
    REQUIRE(joined.id == id);
    ah = ibv_create_ah(id->pd, const_cast<ibv_ah_attr*>(&joined.ud.ah_attr));
    REQUIRE(ah != nullptr);
    return joined;
  }
  void send(std::uint32_t to_qp) {
    static char message[] = "hear ye";
    ibv_mr* out = rdma_reg_msgs(id, message, sizeof message);
    REQUIRE(rdma_post_ud_send(id, nullptr, message, sizeof message, out, IBV_SEND_SIGNALED, ah, to_qp) == 0);
    ibv_wc wc{};
    REQUIRE(rdma_get_send_comp(id, &wc) == 1);
    CHECK(wc.status == IBV_WC_SUCCESS);
    rdma_dereg_mr(out);
  }
  std::string heard() {
    ibv_wc wc{};
    REQUIRE(rdma_get_recv_comp(id, &wc) == 1);
    CHECK(wc.status == IBV_WC_SUCCESS);
    return buffer + 40;
  }
  bool has_heard() {
    ibv_wc wc{};
    return ibv_poll_cq(id->recv_cq, 1, &wc) != 0;
  }

  Channel* channel;
  rdma_cm_id* id = nullptr;
  char buffer[140]{};
  ibv_mr* mr = nullptr;
  ibv_ah* ah = nullptr;
};

TEST_CASE("all members hear what one of them sends, by what the event says", "[multicast]") {
  Channel channel;
  const sockaddr_storage group = ipv4("239.78.0.1", 0);
  Member sender(&channel);
  Member listener(&channel);
  int context = 0;
  const Seen joined = sender.join(group, RDMA_MC_JOIN_FLAG_FULLMEMBER, &context);
  CHECK(joined.status == 0);
  CHECK(joined.ud.private_data == &context);
  CHECK(joined.ud.qp_num == 0xffffff);
  CHECK(joined.ud.qkey == RDMA_UDP_QKEY);
  CHECK(joined.ud.ah_attr.is_global == 1);
  CHECK(joined.ud.ah_attr.grh.hop_limit == 64);
  char shown[64];
  CHECK(std::string(inet_ntop(AF_INET6, joined.ud.ah_attr.grh.dgid.raw, shown, sizeof shown)) == "::ffff:239.78.0.1");
  listener.join(group);
  sender.send(joined.ud.qp_num);
  CHECK(listener.heard() == "hear ye");
  CHECK(sender.heard() == "hear ye");
}

TEST_CASE("who has joined to send only, or has left, hears nothing", "[multicast]") {
  Channel channel;
  sockaddr_storage group = ipv4("239.78.0.2", 0);
  Member sender(&channel);
  Member gone(&channel);
  Member listener(&channel);
  const Seen joined = sender.join(group, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
  gone.join(group);
  listener.join(group);
  REQUIRE(rdma_leave_multicast(gone.id, as_sockaddr(group)) == 0);
  CHECK_FAILS(rdma_leave_multicast(gone.id, as_sockaddr(group)), EADDRNOTAVAIL);
  sender.send(joined.ud.qp_num);
  CHECK(listener.heard() == "hear ye");  // so the others would have, too
  CHECK_FALSE(sender.has_heard());
  CHECK_FALSE(gone.has_heard());
  REQUIRE(rdma_leave_multicast(sender.id, as_sockaddr(group)) == 0);
}

TEST_CASE("a group may be named by its GID", "[multicast]") {
  Channel channel;
  sockaddr_storage group{};
  auto& by_gid = reinterpret_cast<sockaddr_ib&>(group);
  by_gid.sib_family = AF_IB;
  REQUIRE(inet_pton(AF_INET6, "ff15::78:3", by_gid.sib_addr.sib_raw) == 1);
  Member member(&channel);
  const Seen joined = member.join(group);
  CHECK(std::memcmp(joined.ud.ah_attr.grh.dgid.raw, by_gid.sib_addr.sib_raw, 16) == 0);
  member.send(joined.ud.qp_num);
  CHECK(member.heard() == "hear ye");
  CHECK(rdma_leave_multicast(member.id, as_sockaddr(group)) == 0);
}

TEST_CASE("an id without a queue pair of its own learns all it needs", "[multicast]") {
  Channel channel;
  rdma_cm_id* id = nullptr;
  REQUIRE(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_UDP) == 0);
  sockaddr_storage here = ipv4("127.0.0.1", 0);
  sockaddr_storage group = ipv4("239.78.0.4", 0);
  REQUIRE(rdma_bind_addr(id, as_sockaddr(here)) == 0);
  REQUIRE(rdma_join_multicast(id, as_sockaddr(group), &here) == 0);
  const Seen joined = channel.next(RDMA_CM_EVENT_MULTICAST_JOIN);
  CHECK(joined.ud.private_data == &here);
  CHECK(joined.ud.qp_num == 0xffffff);
  CHECK(rdma_destroy_id(id) == 0);  // leaves by itself
}

TEST_CASE("a synchronous id has joined when the call returns", "[multicast]") {
  sockaddr_storage group = ipv4("239.78.0.5", 0);
  Member member;
  REQUIRE(rdma_join_multicast(member.id, as_sockaddr(group), nullptr) == 0);
  REQUIRE(member.id->event != nullptr);
  CHECK(member.id->event->event == RDMA_CM_EVENT_MULTICAST_JOIN);
  CHECK(rdma_leave_multicast(member.id, as_sockaddr(group)) == 0);
  CHECK(member.id->event == nullptr);
}

TEST_CASE("leaving forgets a queued event and waits for one that is being looked at", "[multicast]") {
  Channel channel;
  sockaddr_storage group = ipv4("239.78.0.6", 0);
  Member member(&channel);
  REQUIRE(rdma_join_multicast(member.id, as_sockaddr(group), nullptr) == 0);
  REQUIRE(rdma_leave_multicast(member.id, as_sockaddr(group)) == 0);
  CHECK_FALSE(channel.has_event());

  REQUIRE(rdma_join_multicast(member.id, as_sockaddr(group), nullptr) == 0);
  rdma_cm_event* event = channel.fetch();
  std::atomic<bool> has_left = false;
  std::atomic<pid_t> leaver = 0;
  std::thread leaving([&] {
    leaver = ::gettid();
    CHECK(rdma_leave_multicast(member.id, as_sockaddr(group)) == 0);
    has_left = true;
  });
  while (leaver == 0 || !tests::is_asleep(leaver)) sched_yield();
  CHECK_FALSE(has_left);
  CHECK(rdma_ack_cm_event(event) == 0);
  leaving.join();
  CHECK(has_left);
}

TEST_CASE("what cannot be joined is EINVAL, and what is asked for in vain ENOTSUP", "[multicast]") {
  Channel channel;
  Member member(&channel);
  sockaddr_storage group = ipv4("239.78.0.7", 0);
  sockaddr_storage host = ipv4("10.0.0.1", 0);
  sockaddr_storage none{};
  for (sockaddr_storage* wrong : {&host, &none})
    CHECK_FAILS(rdma_join_multicast(member.id, as_sockaddr(*wrong), nullptr), EINVAL);
  CHECK_FAILS(rdma_join_multicast(member.id, nullptr, nullptr), EINVAL);
  CHECK_FAILS(rdma_join_multicast_ex(member.id, nullptr, nullptr), EINVAL);
  CHECK_FAILS(rdma_leave_multicast(member.id, nullptr), EINVAL);
  CHECK_FAILS(rdma_leave_multicast(member.id, as_sockaddr(group)), EADDRNOTAVAIL);

  rdma_cm_join_mc_attr_ex attr = how(group, RDMA_MC_JOIN_FLAG_RESERVED);
  CHECK_FAILS(rdma_join_multicast_ex(member.id, &attr, nullptr), EINVAL);
  attr = how(group, RDMA_MC_JOIN_FLAG_FULLMEMBER);
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
  CHECK_FAILS(rdma_join_multicast_ex(member.id, &attr, nullptr), EINVAL);
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
  CHECK_FAILS(rdma_join_multicast_ex(member.id, &attr, nullptr), ENOTSUP);

  rdma_cm_id* other = nullptr;
  REQUIRE(rdma_create_id(channel.get(), &other, nullptr, RDMA_PS_UDP) == 0);
  CHECK_FAILS(rdma_join_multicast(other, as_sockaddr(group), nullptr), EINVAL);  // not bound
  sockaddr_storage here = ipv6("::1", 0);
  REQUIRE(rdma_bind_addr(other, as_sockaddr(here)) == 0);
  CHECK_FAILS(rdma_join_multicast(other, as_sockaddr(group), nullptr), EINVAL);  // to an IPv6 address
  destroy(other);
  REQUIRE(rdma_create_id(channel.get(), &other, nullptr, RDMA_PS_TCP) == 0);
  here = ipv4("127.0.0.1", 0);
  REQUIRE(rdma_bind_addr(other, as_sockaddr(here)) == 0);
  CHECK_FAILS(rdma_join_multicast(other, as_sockaddr(group), nullptr), EINVAL);  // of connections
  destroy(other);
  CHECK_FALSE(channel.has_event());
}

}  // namespace
}  // namespace nicless::cm::test
