// SPDX-License-Identifier: MIT
// Goal: through the public interface, every function a program can reach answers: it works, or it refuses in the shape
// of its kind. None is a jump to nowhere. Method: an ordinary verbs program, linked to the library under test; a device
// is opened and its tables are looked at.
#include <infiniband/verbs.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "provider/verbs65.h"

namespace {

struct CloseDevice {
  void operator()(ibv_context* context) const { CHECK(ibv_close_device(context) == 0); }
};
using Context = std::unique_ptr<ibv_context, CloseDevice>;

Context open_first() {
  ibv_device** list = ibv_get_device_list(nullptr);
  REQUIRE(list != nullptr);
  Context context(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  REQUIRE(context);
  return context;
}

nicless_verbs_context* whole(ibv_context* context) {
  return reinterpret_cast<nicless_verbs_context*>(reinterpret_cast<char*>(context) -
                                                  offsetof(nicless_verbs_context, since_44.context));
}

}  // namespace

TEST_CASE("every slot of a context holds a function", "[provider][ops]") {
  const Context context = open_first();
  const auto* slots = reinterpret_cast<void* const*>(whole(context.get()));
  constexpr std::size_t kEnd = offsetof(nicless_verbs_context, since_44._ABI_placeholder3) / sizeof(void*);
  for (std::size_t i = 0; i < kEnd; ++i) {
    INFO("slot " << i);
    CHECK(slots[i] != nullptr);  // one of them is the library's own pointer, priv, which no program reads
  }
  const auto* basic = reinterpret_cast<void* const*>(&context->ops);
  for (std::size_t i = 0; i < sizeof context->ops / sizeof(void*); ++i) {
    INFO("basic slot " << i);
    CHECK(basic[i] != nullptr);
  }
}

TEST_CASE("a context says that it is extended and how long it is", "[provider][ops]") {
  const Context context = open_first();
  CHECK(context->abi_compat == __VERBS_ABI_IS_EXTENDED);
  CHECK(whole(context.get())->since_44.sz == sizeof(nicless_verbs_context));
  CHECK(verbs_get_ctx(context.get()) == &whole(context.get())->since_44);
}

TEST_CASE("what makes something that we lack gives NULL and EOPNOTSUPP", "[provider][unsupported]") {
  const Context context = open_first();
  ibv_counters_init_attr counters{};
  ibv_wq_init_attr wq{};
  const auto refused = [](const void* made) {
    const bool as_promised = made == nullptr && errno == EOPNOTSUPP;
    errno = 0;
    return as_promised;
  };
  CHECK(refused(ibv_create_counters(context.get(), &counters)));
  CHECK(refused(ibv_create_wq(context.get(), &wq)));
  CHECK(refused(ibv_import_device(0)));
  CHECK(refused(ibv_alloc_dmah(context.get(), nullptr)));
  CHECK(refused(ibv_create_comp_cntr(context.get(), nullptr)));
  CHECK(refused(ibv_reg_dmabuf_mr(nullptr, 0, 1, 0, 0, 0)));
}

TEST_CASE("what does something that we lack returns EOPNOTSUPP", "[provider][unsupported]") {
  const Context context = open_first();
  CHECK(ibv_set_ece(nullptr, nullptr) == EOPNOTSUPP);
}

TEST_CASE("a descriptor that we lack is -1 and EOPNOTSUPP, through the symbol and through the slot",
          "[provider][unsupported]") {
  const Context context = open_first();
  const auto refused = [](int fd) {
    const bool as_promised = fd == -1 && errno == EOPNOTSUPP;
    errno = 0;
    return as_promised;
  };
  CHECK(refused(ibv_dm_export_dmabuf_fd(nullptr)));
  CHECK(refused(ibv_export_buf_dmabuf_fd(nullptr)));
  CHECK(refused(whole(context.get())->dm_export_dmabuf_fd(nullptr)));
}

TEST_CASE("raw Ethernet's flows, work queues and counters are refused in the shape of each call",
          "[provider][unsupported]") {
  const Context context = open_first();
  ibv_rwq_ind_table_init_attr table_attr{};
  ibv_flow_action_esp_attr esp{};
  const auto refused = [](const void* made) {
    const bool as_promised = made == nullptr && errno == EOPNOTSUPP;
    errno = 0;
    return as_promised;
  };
  CHECK(refused(ibv_create_rwq_ind_table(context.get(), &table_attr)));
  CHECK(refused(ibv_create_flow_action_esp(context.get(), &esp)));
  ibv_wq wq{};
  wq.context = context.get();
  CHECK(ibv_destroy_wq(&wq) == EOPNOTSUPP);
  ibv_rwq_ind_table table{};
  table.context = context.get();
  CHECK(ibv_destroy_rwq_ind_table(&table) == EOPNOTSUPP);
  ibv_counters counters{context.get()};
  CHECK(ibv_destroy_counters(&counters) == EOPNOTSUPP);
  CHECK(ibv_read_counters(&counters, nullptr, 0, 0) == EOPNOTSUPP);
  ibv_flow flow{};
  flow.context = context.get();
  CHECK(ibv_destroy_flow(&flow) == EOPNOTSUPP);
  ibv_qp qp{};
  qp.context = context.get();
  ibv_flow_attr flow_attr{};
  CHECK(refused(ibv_create_flow(&qp, &flow_attr)));
  ibv_qp_rate_limit_attr rate{};
  CHECK(ibv_modify_qp_rate_limit(&qp, &rate) == EOPNOTSUPP);
  ibv_srq srq{};
  srq.context = context.get();
  ibv_ops_wr op{};
  ibv_ops_wr* bad = nullptr;
  CHECK(ibv_post_srq_ops(&srq, &op, &bad) == EOPNOTSUPP);
  CHECK(bad == &op);
}

TEST_CASE("nothing can be imported, and enhancements of a vendor's are none", "[provider][unsupported]") {
  const Context context = open_first();
  const auto refused = [](const void* made) {
    const bool as_promised = made == nullptr && errno == EOPNOTSUPP;
    errno = 0;
    return as_promised;
  };
  CHECK(refused(ibv_import_device(context->cmd_fd)));
  CHECK(refused(ibv_import_pd(context.get(), 1)));
  CHECK(refused(ibv_import_mr(nullptr, 1)));
  CHECK(refused(ibv_import_dm(context.get(), 1)));
  ibv_ece ece{};
  CHECK(ibv_query_ece(nullptr, &ece) == EOPNOTSUPP);
  CHECK(ibv_set_ece(nullptr, &ece) == EOPNOTSUPP);
}

TEST_CASE("the queries of a device agree with each other", "[provider][device]") {
  const Context context = open_first();
  ibv_port_attr port{};
  REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
  ibv_gid_entry entries[128];
  const ssize_t count = ibv_query_gid_table(context.get(), entries, 128, 0);
  REQUIRE(count >= 0);
  CHECK((port.state == IBV_PORT_ACTIVE) == (count > 0));
  CHECK((count == 0 || count >= 4));
  for (ssize_t i = 0; i < count; ++i) {
    ibv_gid gid;
    REQUIRE(ibv_query_gid(context.get(), 1, static_cast<int>(i), &gid) == 0);
    CHECK(std::memcmp(&gid, &entries[i].gid, sizeof gid) == 0);
  }
  CHECK(ibv_get_pkey_index(context.get(), 1, htons(0xffff)) == 0);
  ibv_device_attr attr{};
  REQUIRE(ibv_query_device(context.get(), &attr) == 0);
  CHECK(attr.node_guid == ibv_get_device_guid(context->device));
  uint64_t speed = 0;
  CHECK(ibv_query_port_speed(context.get(), 1, &speed) == 0);
  CHECK(speed == 100);
}

TEST_CASE("a query that fails says so in the shape of its man page", "[provider][device]") {
  const Context context = open_first();
  ibv_port_attr port{};
  CHECK(ibv_query_port(context.get(), 2, &port) == EINVAL);
  ibv_gid gid;
  errno = 0;
  CHECK(ibv_query_gid(context.get(), 1, 100000, &gid) == -1);
  CHECK(errno == EINVAL);
  ibv_gid_entry entry{};
  CHECK(ibv_query_gid_ex(context.get(), 1, 63, &entry, 0) == ENODATA);
  CHECK(ibv_query_gid_table(context.get(), &entry, 0, 0) < 0);
}

TEST_CASE("a child after fork is nothing to prepare for", "[provider][fork]") {
  CHECK(ibv_fork_init() == 0);
  CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
}

TEST_CASE("enumerators have the texts of rdma-core, and numbers beyond them are unknown", "[provider][strings]") {
  CHECK(ibv_wc_status_str(IBV_WC_SUCCESS) == std::string("success"));
  CHECK(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR) == std::string("Work Request Flushed Error"));
  CHECK(ibv_wc_status_str(static_cast<ibv_wc_status>(99)) == std::string("unknown"));
  CHECK(ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED) == std::string("last WQE reached"));
  CHECK(ibv_event_type_str(IBV_EVENT_WQ_FATAL) == std::string("WQ fatal"));
  CHECK(ibv_node_type_str(IBV_NODE_CA) == std::string("InfiniBand channel adapter"));
  CHECK(ibv_node_type_str(IBV_NODE_UNKNOWN) == std::string("unknown"));
  CHECK(ibv_port_state_str(IBV_PORT_ACTIVE) == std::string("active"));
}

TEST_CASE("rates convert there and back", "[provider][strings]") {
  for (const ibv_rate rate : {IBV_RATE_2_5_GBPS, IBV_RATE_10_GBPS, IBV_RATE_100_GBPS, IBV_RATE_1200_GBPS}) {
    CHECK(mbps_to_ibv_rate(ibv_rate_to_mbps(rate)) == rate);
  }
  CHECK(ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4);
  CHECK(mult_to_ibv_rate(4) == IBV_RATE_10_GBPS);
  CHECK(ibv_rate_to_mbps(IBV_RATE_MAX) == -1);
  CHECK(mult_to_ibv_rate(-1) == IBV_RATE_MAX);
}

TEST_CASE("an open device has a command descriptor that can be duplicated, and that no program inherits",
          "[provider]") {
  const auto context = open_first();
  CHECK((fcntl(context->cmd_fd, F_GETFD) & FD_CLOEXEC) != 0);
  const int copy = dup(context->cmd_fd);
  CHECK(copy >= 0);
  close(copy);
}
