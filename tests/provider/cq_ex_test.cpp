// SPDX-License-Identifier: MIT
// Goal: an extended CQ is polled as ibv_create_cq_ex(3) says, tells each field of a completion, and is a CQ like any
// other besides. Method: the public verbs API; two connected queue pairs, and one that flushes its receives.
#include <catch2/catch.hpp>
#include <cerrno>
#include <ctime>
#include <thread>
#include <vector>

#include "tests/provider/verbs_pair.h"

using namespace nicless::test;

namespace {

constexpr std::uint64_t kAllFields =
    IBV_WC_EX_WITH_BYTE_LEN | std::uint64_t{IBV_WC_EX_WITH_IMM} | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
    IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
    IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO |
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

ibv_cq_init_attr_ex attr_of(std::uint32_t cqe, std::uint64_t wc_flags = kAllFields) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = cqe;
  attr.wc_flags = wc_flags;
  return attr;
}

struct CqEx {
  CqEx(Device& device, ibv_cq_init_attr_ex attr) : cq(ibv_create_cq_ex(device.context, &attr)) {
    REQUIRE(cq != nullptr);
  }
  ~CqEx() { CHECK(ibv_destroy_cq(plain()) == 0); }
  CqEx(const CqEx&) = delete;
  CqEx& operator=(const CqEx&) = delete;
  ibv_cq* plain() { return ibv_cq_ex_to_cq(cq); }

  int start() {
    ibv_poll_cq_attr attr{};
    return ibv_start_poll(cq, &attr);
  }
  void start_when_there() {
    wait_until([&] {
      const int e = start();
      REQUIRE((e == 0 || e == ENOENT));
      return e == 0;
    });
  }
  // The wr_ids of one batch.
  std::vector<std::uint64_t> take_batch() {
    std::vector<std::uint64_t> taken;
    int e = start();
    if (e != 0) return taken;
    for (; e == 0; e = ibv_next_poll(cq)) taken.push_back(cq->wr_id);
    CHECK(e == ENOENT);
    ibv_end_poll(cq);
    return taken;
  }

  ibv_cq_ex* cq;
};

struct Flusher {
  Flusher(Device& device, ibv_cq* cq) : qp(device, rc_attr(cq, cq)) {
    REQUIRE(qp.to_init() == 0);
    REQUIRE(qp.to_error() == 0);
  }
  void complete(std::uint64_t wr_id) { REQUIRE(qp.post_recv(wr_id, {}) == 0); }
  Qp qp;
};

std::uint64_t nanoseconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

int errno_of_creation(Device& device, ibv_cq_init_attr_ex attr) {
  errno = 0;
  CHECK(ibv_create_cq_ex(device.context, &attr) == nullptr);
  return errno;
}

}  // namespace

TEST_CASE("an empty extended CQ says ENOENT, and can be asked again", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  CHECK(cq.start() == ENOENT);
  CHECK(cq.start() == ENOENT);
  Flusher flusher(device, cq.plain());
  flusher.complete(1);
  CHECK(cq.take_batch() == std::vector<std::uint64_t>{1});
  CHECK(cq.start() == ENOENT);
}

TEST_CASE("a batch goes through the completions in order, and the next begins where it ended", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  Flusher flusher(device, cq.plain());
  for (std::uint64_t i = 1; i <= 3; ++i) flusher.complete(i);
  REQUIRE(cq.start() == 0);
  CHECK(cq.cq->wr_id == 1);
  CHECK(cq.cq->status == IBV_WC_WR_FLUSH_ERR);
  CHECK(ibv_wc_read_qp_num(cq.cq) == flusher.qp.qp->qp_num);
  REQUIRE(ibv_next_poll(cq.cq) == 0);
  CHECK(cq.cq->wr_id == 2);
  ibv_end_poll(cq.cq);
  CHECK(cq.take_batch() == std::vector<std::uint64_t>{3});
}

TEST_CASE("each field of a completion is read as ibv_poll_cq would tell it", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  Memory memory(device, 256);
  Qp sender(device, rc_attr(cq.plain(), cq.plain()));
  Qp receiver(device, rc_attr(cq.plain(), cq.plain()));
  sender.connect(receiver);
  receiver.connect(sender);
  REQUIRE(receiver.post_recv(5, {memory.sge(128, 100)}) == 0);
  ibv_sge sge = memory.sge(0, 60);
  ibv_send_wr wr{};
  wr.wr_id = 6;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htobe32(0x01020304);
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(sender.qp, &wr, &bad) == 0);

  cq.start_when_there();
  CHECK(cq.cq->wr_id == 5);
  CHECK(cq.cq->status == IBV_WC_SUCCESS);
  CHECK(ibv_wc_read_opcode(cq.cq) == IBV_WC_RECV);
  CHECK(ibv_wc_read_vendor_err(cq.cq) == 0);
  CHECK(ibv_wc_read_byte_len(cq.cq) == 60);
  CHECK(ibv_wc_read_imm_data(cq.cq) == htobe32(0x01020304));
  CHECK(ibv_wc_read_invalidated_rkey(cq.cq) == htobe32(0x01020304));  // the same place
  CHECK(ibv_wc_read_qp_num(cq.cq) == receiver.qp->qp_num);
  CHECK(ibv_wc_read_src_qp(cq.cq) == sender.qp->qp_num);
  CHECK(ibv_wc_read_wc_flags(cq.cq) == IBV_WC_WITH_IMM);
  CHECK(ibv_wc_read_slid(cq.cq) == 0);
  CHECK(ibv_wc_read_sl(cq.cq) == 0);
  CHECK(ibv_wc_read_dlid_path_bits(cq.cq) == 0);
  CHECK(ibv_wc_read_cvlan(cq.cq) == 0);
  CHECK(ibv_wc_read_flow_tag(cq.cq) == 0);
  ibv_wc_tm_info tags{1, 1};
  ibv_wc_read_tm_info(cq.cq, &tags);
  CHECK(tags.tag == 0);
  CHECK(tags.priv == 0);
  ibv_end_poll(cq.cq);
}

TEST_CASE("completions are stamped when they are made, by the clock that query_rt_values reads", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  Flusher flusher(device, cq.plain());
  ibv_values_ex before{IBV_VALUES_MASK_RAW_CLOCK, {}};
  REQUIRE(ibv_query_rt_values_ex(device.context, &before) == 0);
  const std::uint64_t wall_before = nanoseconds_of(CLOCK_REALTIME);
  flusher.complete(1);
  ibv_values_ex after{IBV_VALUES_MASK_RAW_CLOCK, {}};
  REQUIRE(ibv_query_rt_values_ex(device.context, &after) == 0);
  const std::uint64_t wall_after = nanoseconds_of(CLOCK_REALTIME);

  REQUIRE(cq.start() == 0);
  const std::uint64_t stamp = ibv_wc_read_completion_ts(cq.cq);
  CHECK(static_cast<std::uint64_t>(before.raw_clock.tv_nsec) <= stamp);
  CHECK(stamp <= static_cast<std::uint64_t>(after.raw_clock.tv_nsec));
  // Converted with the offset of the two clocks at the start of the batch: a microsecond is lost between two readings.
  constexpr std::uint64_t kSlack = 1'000'000'000;
  const std::uint64_t wall = ibv_wc_read_completion_wallclock_ns(cq.cq);
  CHECK(wall_before < wall + kSlack);
  CHECK(wall < wall_after + kSlack);
  ibv_end_poll(cq.cq);
}

TEST_CASE("an extended CQ is polled, resized and armed like any other", "[cq_ex]") {
  Device device;
  Channel channel(device);
  ibv_cq_init_attr_ex attr = attr_of(4);
  attr.channel = channel.channel;
  attr.cq_context = &device;
  CqEx cq(device, attr);
  CHECK(cq.plain()->cqe == 4);
  Flusher flusher(device, cq.plain());
  REQUIRE(ibv_req_notify_cq(cq.plain(), 0) == 0);
  flusher.complete(1);
  ibv_cq* from = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(channel.channel, &from, &context) == 0);
  CHECK(from == cq.plain());
  CHECK(context == &device);
  ibv_ack_cq_events(from, 1);
  CHECK(ibv_resize_cq(cq.plain(), 8) == 0);
  CHECK(cq.cq->cqe == 8);
  ibv_wc wc{};
  REQUIRE(ibv_poll_cq(cq.plain(), 1, &wc) == 1);
  CHECK(wc.wr_id == 1);
  CHECK(cq.start() == ENOENT);
}

TEST_CASE("a second thread waits until the batch of the first has ended", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  Flusher flusher(device, cq.plain());
  flusher.complete(1);
  flusher.complete(2);
  REQUIRE(cq.start() == 0);
  std::vector<std::uint64_t> other;
  std::thread second([&] { other = cq.take_batch(); });
  CHECK(cq.cq->wr_id == 1);
  ibv_end_poll(cq.cq);
  second.join();
  CHECK(other == std::vector<std::uint64_t>{2});
}

TEST_CASE("a batch of a single-threaded CQ takes no lock", "[cq_ex]") {
  Device device;
  ibv_cq_init_attr_ex attr = attr_of(16);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  CqEx cq(device, attr);
  Flusher flusher(device, cq.plain());
  flusher.complete(1);
  flusher.complete(2);
  REQUIRE(cq.start() == 0);
  REQUIRE(cq.start() == 0);  // would wait for itself
  CHECK(cq.cq->wr_id == 2);
  ibv_end_poll(cq.cq);
}

TEST_CASE("a CQ that ignores overruns keeps the newest completions", "[cq_ex]") {
  Device device;
  ibv_cq_init_attr_ex attr = attr_of(2);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  CqEx cq(device, attr);
  Flusher flusher(device, cq.plain());
  for (std::uint64_t i = 1; i <= 5; ++i) flusher.complete(i);
  CHECK(cq.take_batch() == std::vector<std::uint64_t>{4, 5});
}

TEST_CASE("polling an overrun extended CQ is EIO, and no batch begins", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(1));
  {
    Flusher flusher(device, cq.plain());
    flusher.complete(1);
    flusher.complete(2);
  }
  CHECK(cq.start() == EIO);
  CHECK(cq.start() == EIO);
}

TEST_CASE("an extended CQ keeps its parent domain, which must be one", "[cq_ex]") {
  Device device;
  ibv_parent_domain_init_attr parent_attr{};
  parent_attr.pd = device.pd;
  ibv_pd* const parent = ibv_alloc_parent_domain(device.context, &parent_attr);
  REQUIRE(parent != nullptr);
  {
    ibv_cq_init_attr_ex attr = attr_of(16);
    attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
    attr.parent_domain = parent;
    CqEx cq(device, attr);
    CHECK(ibv_dealloc_pd(parent) == EBUSY);
    attr.parent_domain = device.pd;
    CHECK(errno_of_creation(device, attr) == EINVAL);
    attr.parent_domain = nullptr;
    CHECK(errno_of_creation(device, attr) == EINVAL);
  }
  CHECK(ibv_dealloc_pd(parent) == 0);
}

TEST_CASE("what an extended CQ cannot be is refused: EINVAL, and EOPNOTSUPP for fields it does not have", "[cq_ex]") {
  Device device;
  ibv_cq_init_attr_ex attr = attr_of(0);
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr.cqe = 1u << 31;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr = attr_of(16);
  attr.comp_vector = static_cast<std::uint32_t>(device.context->num_comp_vectors);
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr = attr_of(16);
  attr.comp_mask = 1u << 7;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  attr = attr_of(16);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attr.flags = 1u << 7;
  CHECK(errno_of_creation(device, attr) == EINVAL);
  CHECK(errno_of_creation(device, attr_of(16, std::uint64_t{1} << 40)) == EOPNOTSUPP);
}

TEST_CASE("a start_poll with an unknown comp_mask is refused", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  ibv_poll_cq_attr attr{1};
  CHECK(ibv_start_poll(cq.cq, &attr) == EINVAL);
  CHECK(cq.start() == ENOENT);
}

TEST_CASE("a moderated CQ raises its event with the last of the completions that it waits for", "[cq_ex]") {
  Device device;
  Channel channel(device);
  ibv_cq_init_attr_ex init = attr_of(16);
  init.channel = channel.channel;
  CqEx cq(device, init);
  Flusher flusher(device, cq.plain());
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {2, 4095};
  REQUIRE(ibv_modify_cq(cq.plain(), &attr) == 0);
  REQUIRE(ibv_req_notify_cq(cq.plain(), 0) == 0);
  flusher.complete(1);
  flusher.complete(2);
  CHECK(channel.is_readable());
  ibv_cq* from = nullptr;
  void* context = nullptr;
  REQUIRE(ibv_get_cq_event(channel.channel, &from, &context) == 0);
  ibv_ack_cq_events(from, 1);

  REQUIRE(ibv_req_notify_cq(cq.plain(), 0) == 0);
  flusher.complete(3);  // and no other: the period ends, and the event comes
  REQUIRE(ibv_get_cq_event(channel.channel, &from, &context) == 0);
  CHECK(from == cq.plain());
  ibv_ack_cq_events(from, 1);
}

TEST_CASE("moderation is held to the device's limits", "[cq_ex]") {
  Device device;
  CqEx cq(device, attr_of(16));
  ibv_device_attr_ex device_attr{};
  REQUIRE(ibv_query_device_ex(device.context, nullptr, &device_attr) == 0);
  CHECK(device_attr.cq_mod_caps.max_cq_count == 0xffff);
  CHECK(device_attr.cq_mod_caps.max_cq_period == 4095);
  ibv_modify_cq_attr attr{};
  CHECK(ibv_modify_cq(cq.plain(), &attr) == EINVAL);
  attr.attr_mask = IBV_CQ_ATTR_MODERATE << 1;
  CHECK(ibv_modify_cq(cq.plain(), &attr) == EINVAL);
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {1, 4096};
  CHECK(ibv_modify_cq(cq.plain(), &attr) == EINVAL);
  attr.moderate = {0xffff, 4095};
  CHECK(ibv_modify_cq(cq.plain(), &attr) == 0);
}
