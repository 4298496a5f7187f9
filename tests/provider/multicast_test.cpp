// SPDX-License-Identifier: MIT
// Goal: a datagram to a multicast GID reaches every queue pair that is attached to it, in this process and in others,
// and nobody else: ibv_attach_mcast(3). Method: groups on the addresses of this machine, several queue pairs of this
// process and a forked child's. What must not arrive is shown by what is sent after it and does.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "tests/provider/datagrams.h"
#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;
constexpr std::size_t kSlot = 256;  // of the receiver's memory, for each receive

ibv_gid gid(const std::string& text) {
  ibv_gid gid{};
  REQUIRE(inet_pton(AF_INET6, text.c_str(), gid.raw) == 1);
  return gid;
}

// The index of this address in the device's table; -1 where the machine has not got it.
int index_of(Device& device, const std::string& address) {
  const ibv_gid wanted = gid(address);
  for (int index = 0; index < 64; ++index) {
    ibv_gid found{};
    if (ibv_query_gid(device.context, 1, index, &found) == 0 && std::memcmp(&found, &wanted, sizeof found) == 0) {
      return index;
    }
  }
  return -1;
}

ibv_ah* make_group_ah(Device& device, const ibv_gid& group, int gid_index) {
  ibv_ah_attr attr{};
  attr.grh.dgid = group;
  attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
  attr.grh.hop_limit = 1;
  attr.is_global = 1;
  attr.port_num = 1;
  return ibv_create_ah(device.pd, &attr);
}

// A queue pair with receives posted, and where they are.
struct Party {
  Party(Device& device, std::uint32_t qkey = kQkey)
      : cq(device), memory(device, 16 * kSlot), qp(device, datagram_attr(cq)) {
    start(qkey);
  }
  Party(Device& device, std::uint32_t create_flags, std::uint32_t qkey)
      : cq(device), memory(device, 16 * kSlot), qp(device, make(device, cq, create_flags)) {
    start(qkey);
  }
  void start(std::uint32_t qkey) {
    start_datagrams(qp, qkey);
    for (std::uint64_t i = 0; i < 8; ++i) REQUIRE(qp.post_recv(i, {memory.sge(i * kSlot, kSlot)}) == 0);
  }
  static ibv_qp* make(Device& device, Cq& cq, std::uint32_t create_flags) {
    const ibv_qp_init_attr plain = datagram_attr(cq);
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = plain.send_cq;
    attr.recv_cq = plain.recv_cq;
    attr.cap = plain.cap;
    attr.qp_type = plain.qp_type;
    attr.pd = device.pd;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attr.create_flags = create_flags;
    return ibv_create_qp_ex(device.context, &attr);
  }

  // The next message, as one letter.
  char take() {
    ibv_wc wc = cq.take();
    while (wc.opcode != IBV_WC_RECV) wc = cq.take();
    REQUIRE(wc.status == IBV_WC_SUCCESS);
    CHECK(wc.byte_len == kGrhBytes + 1);
    last = wc;
    return static_cast<char>(memory.bytes[wc.wr_id * kSlot + kGrhBytes]);
  }
  int send(ibv_ah* ah, char letter, std::uint32_t qkey = kQkey) {
    memory.bytes[15 * kSlot] = static_cast<std::uint8_t>(letter);
    return post_datagram(qp, ah, kMulticastQpn, memory.sge(15 * kSlot, 1), qkey, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
  }

  Cq cq;
  Memory memory;
  Qp qp;
  ibv_wc last{};
};

}  // namespace

TEST_CASE("a datagram to a group reaches every queue pair that is attached, the sender's own included", "[multicast]") {
  const auto [group_name, address] = GENERATE(table<std::string, std::string>({
      {"::ffff:239.1.2.3", "::ffff:127.0.0.1"},
      {"ff0e::ffff:239.1.2.4", "::ffff:127.0.0.1"},
      {"ff0e::4711", "::ffff:127.0.0.1"},
  }));
  Device device;
  const int index = index_of(device, address);
  REQUIRE(index >= 0);
  const ibv_gid group = gid(group_name);
  Party sender(device), other(device), outside(device);
  REQUIRE(ibv_attach_mcast(sender.qp.qp, &group, 0) == 0);
  REQUIRE(ibv_attach_mcast(other.qp.qp, &group, 0) == 0);
  ibv_ah* const ah = make_group_ah(device, group, index);
  REQUIRE(ah != nullptr);
  ibv_ah* const to_outside = make_ah(device, static_cast<std::uint8_t>(index));

  REQUIRE(sender.send(ah, 'm') == 0);
  CHECK(other.take() == 'm');
  CHECK(sender.take() == 'm');
  CHECK(other.last.src_qp == sender.qp.qp->qp_num);
  CHECK((other.last.wc_flags & IBV_WC_GRH) != 0);
  sender.memory.bytes[14 * kSlot] = 'u';
  REQUIRE(post_datagram(sender.qp, to_outside, outside.qp.qp->qp_num, sender.memory.sge(14 * kSlot, 1)) == 0);
  CHECK(outside.take() == 'u');  // and nothing before it

  CHECK(ibv_detach_mcast(sender.qp.qp, &group, 0) == 0);
  CHECK(ibv_detach_mcast(other.qp.qp, &group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
  CHECK(ibv_destroy_ah(to_outside) == 0);
}

TEST_CASE("over IPv6, from an address that others can reach", "[multicast]") {
  Device device;
  int index = -1;
  for (int i = 63; i >= 0; --i) {
    ibv_gid found{};
    ibv_query_gid(device.context, 1, i, &found);
    if ((found.raw[0] & 0xe0) == 0x20 || (found.raw[0] & 0xfe) == 0xfc) index = i;
  }
  if (index < 0) {
    WARN("this machine has no such address");
    return;
  }
  const ibv_gid group = gid(GENERATE("ff0e::4712", "ff02::4712", "ff01::4712", "ff12:401b:ffff::4712"));
  Party sender(device), receiver(device);
  REQUIRE(ibv_attach_mcast(receiver.qp.qp, &group, 0) == 0);
  ibv_ah* const ah = make_group_ah(device, group, index);
  REQUIRE(ah != nullptr);
  REQUIRE(sender.send(ah, '6') == 0);
  CHECK(receiver.take() == '6');
  CHECK(receiver.memory.bytes[0] >> 4 == 6);  // the GRH is the IPv6 header
  CHECK(ibv_detach_mcast(receiver.qp.qp, &group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("one can send without being attached, and the GRH names the group", "[multicast]") {
  Device device;
  const ibv_gid group = gid("::ffff:239.1.2.5");
  Party sender(device), receiver(device);
  REQUIRE(ibv_attach_mcast(receiver.qp.qp, &group, 0) == 0);
  ibv_ah* const ah = make_group_ah(device, group, index_of(device, "::ffff:127.0.0.1"));
  REQUIRE(sender.send(ah, 'q') == 0);
  CHECK(receiver.take() == 'q');
  auto* const grh = reinterpret_cast<ibv_grh*>(&receiver.memory.bytes[receiver.last.wr_id * kSlot]);
  CHECK(std::memcmp(reinterpret_cast<const char*>(grh) + 36, group.raw + 12, 4) == 0);  // the group's address
  errno = 0;
  CHECK(ibv_create_ah_from_wc(device.pd, &receiver.last, grh, 1) == nullptr);  // a group is no address to answer from
  CHECK(errno == EINVAL);
  CHECK(ibv_detach_mcast(receiver.qp.qp, &group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("other groups, other Q_Keys and detached queue pairs get nothing", "[multicast]") {
  Device device;
  const ibv_gid group = gid("::ffff:239.1.2.6");
  const ibv_gid other_group = gid("::ffff:239.1.2.7");
  Party sender(device), member(device), gone(device), stranger(device, kQkey + 1);
  for (Party* party : {&member, &gone, &stranger}) REQUIRE(ibv_attach_mcast(party->qp.qp, &group, 0) == 0);
  REQUIRE(ibv_attach_mcast(member.qp.qp, &other_group, 0) == 0);
  const int index = index_of(device, "::ffff:127.0.0.1");
  ibv_ah* const ah = make_group_ah(device, group, index);
  ibv_ah* const other_ah = make_group_ah(device, other_group, index);
  REQUIRE(ibv_detach_mcast(gone.qp.qp, &group, 0) == 0);

  REQUIRE(sender.send(ah, '1') == 0);
  REQUIRE(sender.send(other_ah, '2') == 0);
  REQUIRE(sender.send(ah, '3', kQkey + 1) == 0);
  // In order for each group; the two groups have sockets of their own.
  const std::string both{member.take(), member.take()};
  CHECK((both == "12" || both == "21"));
  CHECK(stranger.take() == '3');

  REQUIRE(ibv_attach_mcast(gone.qp.qp, &group, 0) == 0);
  REQUIRE(sender.send(ah, '4') == 0);
  CHECK(gone.take() == '4');
  CHECK(member.take() == '4');
  for (Party* party : {&member, &gone, &stranger}) CHECK(ibv_detach_mcast(party->qp.qp, &group, 0) == 0);
  CHECK(ibv_detach_mcast(member.qp.qp, &other_group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
  CHECK(ibv_destroy_ah(other_ah) == 0);
}

TEST_CASE("a queue pair made with BLOCK_SELF_MCAST_LB hears others, and not itself", "[multicast]") {
  Device device;
  const ibv_gid group = gid("::ffff:239.1.2.8");
  Party deaf(device, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, kQkey);
  Party other(device);
  REQUIRE(ibv_attach_mcast(deaf.qp.qp, &group, 0) == 0);
  REQUIRE(ibv_attach_mcast(other.qp.qp, &group, 0) == 0);
  ibv_ah* const ah = make_group_ah(device, group, index_of(device, "::ffff:127.0.0.1"));
  REQUIRE(deaf.send(ah, '1') == 0);
  REQUIRE(other.send(ah, '2') == 0);
  CHECK(other.take() == '1');
  CHECK(other.take() == '2');
  CHECK(deaf.take() == '2');
  CHECK(ibv_detach_mcast(deaf.qp.qp, &group, 0) == 0);
  CHECK(ibv_detach_mcast(other.qp.qp, &group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
}

TEST_CASE("a program that sleeps on its completion channel is woken by a multicast datagram", "[multicast]") {
  Device device;
  const ibv_gid group = gid("::ffff:239.1.2.9");
  ibv_comp_channel* const channel = ibv_create_comp_channel(device.context);
  REQUIRE(channel != nullptr);
  {
    Cq cq(device, 16, channel);
    Memory memory(device, kSlot);
    Qp qp(device, datagram_attr(cq));
    start_datagrams(qp);
    REQUIRE(qp.post_recv(1, {memory.sge(0, kSlot)}) == 0);
    Party sender(device);
    REQUIRE(ibv_attach_mcast(qp.qp, &group, 0) == 0);
    REQUIRE(ibv_req_notify_cq(cq.cq, 0) == 0);
    ibv_ah* const ah = make_group_ah(device, group, index_of(device, "::ffff:127.0.0.1"));
    REQUIRE(sender.send(ah, 'w') == 0);
    pollfd waited{channel->fd, POLLIN, 0};
    CHECK(poll(&waited, 1, 20000) == 1);
    ibv_cq* woken = nullptr;
    void* context = nullptr;
    REQUIRE(ibv_get_cq_event(channel, &woken, &context) == 0);
    ibv_ack_cq_events(woken, 1);
    CHECK(cq.take().byte_len == kGrhBytes + 1);
    CHECK(ibv_detach_mcast(qp.qp, &group, 0) == 0);
    CHECK(ibv_destroy_ah(ah) == 0);
  }
  CHECK(ibv_destroy_comp_channel(channel) == 0);
}

TEST_CASE("another process that is attached gets the datagram, too", "[multicast]") {
  const ibv_gid group = gid("::ffff:239.1.2.10");
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    Device device;
    Party party(device);
    const bool is_attached = ibv_attach_mcast(party.qp.qp, &group, 0) == 0;
    const char byte = is_attached ? 'r' : 'f';
    if (write(ready[1], &byte, 1) != 1) _exit(2);
    const char letter = party.take();
    _exit(letter == 'p' ? 0 : 1);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'r');
  Device device;
  Party sender(device), own(device);
  REQUIRE(ibv_attach_mcast(own.qp.qp, &group, 0) == 0);
  ibv_ah* const ah = make_group_ah(device, group, index_of(device, "::ffff:127.0.0.1"));
  REQUIRE(sender.send(ah, 'p') == 0);
  CHECK(own.take() == 'p');
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(ibv_detach_mcast(own.qp.qp, &group, 0) == 0);
  CHECK(ibv_destroy_ah(ah) == 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("what cannot be attached or detached is refused", "[multicast]") {
  Device device;
  const ibv_gid group = gid("::ffff:239.1.2.11");
  const ibv_gid unicast = gid("::ffff:10.0.0.1");
  Party party(device);
  Cq cq(device);
  Qp connected(device, rc_attr(cq.cq, cq.cq));
  CHECK(ibv_attach_mcast(connected.qp, &group, 0) == EINVAL);
  CHECK(ibv_attach_mcast(party.qp.qp, &unicast, 0) == EINVAL);
  CHECK(ibv_detach_mcast(party.qp.qp, &group, 0) == EINVAL);
  REQUIRE(ibv_attach_mcast(party.qp.qp, &group, 0xc001) == 0);
  CHECK(ibv_attach_mcast(party.qp.qp, &group, 0) == 0);  // once is enough
  CHECK(ibv_destroy_qp(party.qp.qp) == EBUSY);
  CHECK(ibv_detach_mcast(party.qp.qp, &group, 0) == 0);
  CHECK(ibv_detach_mcast(party.qp.qp, &group, 0) == EINVAL);
}

TEST_CASE("an address handle to a group needs a source of the group's IP version", "[multicast]") {
  Device device;
  const int loopback6 = index_of(device, "::1");
  if (loopback6 < 0) return;
  errno = 0;
  CHECK(make_group_ah(device, gid("::ffff:239.1.2.12"), loopback6) == nullptr);
  CHECK(errno == EINVAL);
  errno = 0;
  CHECK(make_group_ah(device, gid("ff0e::4713"), loopback6) == nullptr);
  CHECK(errno == EINVAL);
}
