// SPDX-License-Identifier: MIT
// Fixtures over the public verbs API: an open device with a PD, a CQ and registered memory, and two connected queue
// pairs. Everything is taken down in order, and taking down must succeed. Waiting polls, and is bounded.
#pragma once

#include <infiniband/verbs.h>
#include <poll.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace nicless::test {

inline constexpr std::chrono::seconds kPatience{20};

// Until `done` holds; fails the test when patience ends.
inline void wait_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) REQUIRE(std::chrono::steady_clock::now() < end);
}

class Device {
 public:
  Device() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    REQUIRE(count >= 1);
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    REQUIRE(context != nullptr);
    pd = ibv_alloc_pd(context);
    REQUIRE(pd != nullptr);
  }
  ~Device() {
    if (pd != nullptr) CHECK(ibv_dealloc_pd(pd) == 0);
    CHECK(ibv_close_device(context) == 0);
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
};

class Channel {
 public:
  explicit Channel(Device& device) : channel(ibv_create_comp_channel(device.context)) { REQUIRE(channel != nullptr); }
  ~Channel() {
    if (channel != nullptr) CHECK(ibv_destroy_comp_channel(channel) == 0);
  }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  bool is_readable(std::chrono::milliseconds patience = {}) const {
    pollfd waited{channel->fd, POLLIN, 0};
    return poll(&waited, 1, static_cast<int>(patience.count())) == 1;
  }
  // Sleeps until there is an event, and takes and acknowledges it.
  void wait_for_event() {
    REQUIRE(is_readable(kPatience));
    ibv_cq* from = nullptr;
    void* context = nullptr;
    REQUIRE(ibv_get_cq_event(channel, &from, &context) == 0);
    ibv_ack_cq_events(from, 1);
  }

  ibv_comp_channel* channel;
};

class Cq {
 public:
  explicit Cq(Device& device, int cqe = 256, ibv_comp_channel* channel = nullptr)
      : cq(ibv_create_cq(device.context, cqe, this, channel, 0)) {
    REQUIRE(cq != nullptr);
  }
  ~Cq() {
    if (cq != nullptr) CHECK(ibv_destroy_cq(cq) == 0);
  }
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  // The next completion.
  ibv_wc take() {
    ibv_wc wc{};
    int found = 0;
    wait_until([&] {
      found = ibv_poll_cq(cq, 1, &wc);
      REQUIRE(found >= 0);
      return found == 1;
    });
    return wc;
  }
  bool is_empty() {
    ibv_wc wc;
    return ibv_poll_cq(cq, 1, &wc) == 0;
  }

  ibv_cq* cq = nullptr;
};

class Memory {
 public:
  explicit Memory(Device& device, std::size_t size,
                  int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
      : bytes(size) {
    mr = ibv_reg_mr(device.pd, bytes.data(), bytes.size(), access);
    REQUIRE(mr != nullptr);
  }
  ~Memory() {
    if (mr != nullptr) CHECK(ibv_dereg_mr(mr) == 0);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  ibv_sge sge(std::size_t offset, std::size_t length) {
    return {reinterpret_cast<std::uint64_t>(bytes.data() + offset), static_cast<std::uint32_t>(length), mr->lkey};
  }
  void fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(seed + i * 7 + (i >> 8));
  }

  std::vector<std::uint8_t> bytes;
  ibv_mr* mr = nullptr;
};

inline ibv_qp_init_attr rc_attr(ibv_cq* send_cq, ibv_cq* recv_cq) {
  ibv_qp_init_attr attr{};
  attr.send_cq = send_cq;
  attr.recv_cq = recv_cq;
  attr.cap = {64, 64, 4, 4, 128};
  attr.qp_type = IBV_QPT_RC;
  return attr;
}

class Qp {
 public:
  Qp(Device& the_device, ibv_qp_init_attr attr) : device(the_device), qp(ibv_create_qp(the_device.pd, &attr)) {
    REQUIRE(qp != nullptr);
  }
  Qp(Device& the_device, ibv_qp* made) : device(the_device), qp(made) { REQUIRE(qp != nullptr); }
  ~Qp() {
    if (qp != nullptr) CHECK(ibv_destroy_qp(qp) == 0);
  }
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  int to_init() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  }
  int to_rtr(std::uint32_t peer_qpn, ibv_gid peer_gid, int gid_index = 0) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer_qpn;
    attr.rq_psn = 0xfffff0;  // the numbers wrap early
    attr.max_dest_rd_atomic = 4;
    attr.min_rnr_timer = 1;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = peer_gid;
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index);
    attr.ah_attr.grh.hop_limit = 64;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }
  int to_rts(std::uint8_t rnr_retry = 7) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = rnr_retry;
    attr.sq_psn = 0xfffff0;
    attr.max_rd_atomic = 4;
    return ibv_modify_qp(
        qp, &attr,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  void connect(const Qp& peer, std::uint8_t rnr_retry = 7) {
    ibv_gid gid{};
    REQUIRE(ibv_query_gid(peer.device.context, 1, 0, &gid) == 0);
    REQUIRE(to_init() == 0);
    REQUIRE(to_rtr(peer.qp->qp_num, gid) == 0);
    REQUIRE(to_rts(rnr_retry) == 0);
  }
  void connect_unreliable(const Qp& peer) {
    REQUIRE(to_init() == 0);
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.hop_limit = 64;
    REQUIRE(ibv_query_gid(peer.device.context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
    REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) ==
            0);
    attr.qp_state = IBV_QPS_RTS;
    REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  }
  int to_error() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_ERR;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  }

  int post_recv(std::uint64_t wr_id, std::vector<ibv_sge> list) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(qp, &wr, &bad);
  }
  int post_send(std::uint64_t wr_id, std::vector<ibv_sge> list, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.sg_list = list.data();
    wr.num_sge = static_cast<int>(list.size());
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }

  Device& device;
  ibv_qp* qp = nullptr;
};

}  // namespace nicless::test
