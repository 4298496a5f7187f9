// SPDX-License-Identifier: MIT
// The door of librdmacm.so.1: every rdma_* symbol, converting results to what the man pages promise and nothing else.
// The symbol versions are in librdmacm.map.
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cm/address.h"
#include "cm/addrinfo.h"
#include "cm/agent.h"
#include "cm/cm_id.h"
#include "cm/connect.h"
#include "cm/endpoint.h"
#include "cm/errno_shape.h"
#include "cm/event_channel.h"
#include "cm/event_names.h"
#include "cm/multicast.h"
#include "cm/qp.h"
#include "cm/resolve.h"

using namespace nicless::cm;  // NOLINT(google-build-using-namespace): one-liners that name little else
using nicless::queue::error;

namespace {

template <typename T>
Result<void> check_pointer(const T* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return error(EINVAL, std::string(name) + " is NULL");
}

}  // namespace

extern "C" {

// Event channels and events.

rdma_event_channel* rdma_create_event_channel() {
  return to_pointer("rdma_create_event_channel", [] { return create_event_channel(); });
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (channel != nullptr) destroy_event_channel(channel_of(channel));
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return to_int_cancellable("rdma_get_cm_event", [&]() -> Result<void> {
    if (auto ok = check_pointer(channel, "channel"); !ok) return ok;
    if (auto ok = check_pointer(event, "event"); !ok) return ok;
    return hand_out(event, fetch_event(channel_of(channel)));
  });
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  return to_int("rdma_ack_cm_event", [&]() -> Result<void> {
    if (auto ok = check_pointer(event, "event"); !ok) return ok;
    ack_cm_event(*static_cast<CmEvent*>(event));
    return {};
  });
}

const char* rdma_event_str(rdma_cm_event_type event) {
  return name_of(event);
}

// Ids.

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space ps) {
  return to_int("rdma_create_id", [&]() -> Result<void> {
    if (auto ok = check_pointer(id, "id"); !ok) return ok;
    const bool is_datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
    return hand_out(id, create_id(channel, context, ps, is_datagram ? IBV_QPT_UD : IBV_QPT_RC));
  });
}

int rdma_destroy_id(rdma_cm_id* id) {
  return on_any_id("rdma_destroy_id", id, [](CmId& ours) { return destroy_id(ours); });
}

int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  return on_id("rdma_migrate_id", id, [&](CmId& ours) { return migrate_id(ours, channel); });
}

int rdma_set_option(rdma_cm_id* id, int level, int optname, void* optval, size_t optlen) {
  return on_id("rdma_set_option", id, [&](CmId& ours) { return set_option(ours, level, optname, optval, optlen); });
}

int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* res, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  return to_int("rdma_create_ep", [&]() -> Result<void> {
    if (auto ok = check_pointer(id, "id"); !ok) return ok;
    if (auto ok = check_pointer(res, "res"); !ok) return ok;
    return hand_out(id, create_ep(*res, pd, qp_init_attr));
  });
}

void rdma_destroy_ep(rdma_cm_id* id) {
  on_any_id("rdma_destroy_ep", id, [](CmId& ours) {
    destroy_ep(ours);
    return Result<void>{};
  });
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) {
  return on_id("rdma_get_request", listen, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(id, "id"); !ok) return ok;
    return hand_out(id, next_request(ours));
  });
}

// Addresses.

int rdma_bind_addr(rdma_cm_id* id, sockaddr* addr) {
  return on_id("rdma_bind_addr", id, [&](CmId& ours) { return bind_addr(ours, addr); });
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* src_addr, sockaddr* dst_addr, int timeout_ms) {
  return on_id("rdma_resolve_addr", id, [&](CmId& ours) { return resolve_addr(ours, src_addr, dst_addr, timeout_ms); });
}

int rdma_resolve_route(rdma_cm_id* id, int) {
  return on_id("rdma_resolve_route", id, [](CmId& ours) { return resolve_route(ours); });
}

__be16 rdma_get_src_port(rdma_cm_id* id) {
  return id == nullptr ? 0 : htobe16(port_of(id->route.addr.src_addr));
}

__be16 rdma_get_dst_port(rdma_cm_id* id) {
  return id == nullptr ? 0 : htobe16(port_of(id->route.addr.dst_addr));
}

int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints, rdma_addrinfo** res) {
  return look_up_addrinfo(node, service, hints, res);
}

void rdma_freeaddrinfo(rdma_addrinfo* res) {
  free_addrinfo(res);
}

// Connections.

int rdma_connect(rdma_cm_id* id, rdma_conn_param* conn_param) {
  return on_id("rdma_connect", id, [&](CmId& ours) { return connect(ours, conn_param); });
}

int rdma_listen(rdma_cm_id* id, int backlog) {
  return on_id("rdma_listen", id, [&](CmId& ours) { return listen(ours, backlog); });
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* conn_param) {
  return on_id("rdma_accept", id, [&](CmId& ours) { return accept(ours, conn_param); });
}

int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return on_id("rdma_reject", id, [&](CmId& ours) {
    const auto* data = static_cast<const std::byte*>(private_data);
    return reject(ours, {data, data == nullptr ? 0 : std::size_t{private_data_len}});
  });
}

int rdma_establish(rdma_cm_id* id) {
  return on_id("rdma_establish", id, [](CmId& ours) -> Result<void> {
    if (ours.qp != nullptr) return error(EINVAL, "the id has a queue pair: its connection is established for it");
    return establish(ours);
  });
}

int rdma_notify(rdma_cm_id* id, ibv_event_type event) {
  return on_id("rdma_notify", id, [&](CmId& ours) { return notify(ours, event); });
}

int rdma_disconnect(rdma_cm_id* id) {
  return on_id("rdma_disconnect", id, [](CmId& ours) { return disconnect(ours); });
}

// Multicast groups.

int rdma_join_multicast(rdma_cm_id* id, sockaddr* addr, void* context) {
  return on_id("rdma_join_multicast", id, [&](CmId& ours) { return join_multicast(ours, addr, false, context); });
}

int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* mc_join_attr, void* context) {
  return on_id("rdma_join_multicast_ex", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(mc_join_attr, "mc_join_attr"); !ok) return ok;
    return join_multicast(ours, *mc_join_attr, context);
  });
}

int rdma_leave_multicast(rdma_cm_id* id, sockaddr* addr) {
  return on_id("rdma_leave_multicast", id, [&](CmId& ours) { return leave_multicast(ours, addr); });
}

// Queue pairs.

int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* qp_init_attr) {
  return on_id("rdma_create_qp", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(qp_init_attr, "qp_init_attr"); !ok) return ok;
    return create_qp(ours, pd, *qp_init_attr);
  });
}

int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* qp_init_attr) {
  return on_id("rdma_create_qp_ex", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(qp_init_attr, "qp_init_attr"); !ok) return ok;
    return create_qp(ours, *qp_init_attr);
  });
}

void rdma_destroy_qp(rdma_cm_id* id) {
  on_any_id("rdma_destroy_qp", id, [](CmId& ours) {
    destroy_qp(ours);
    return Result<void>{};
  });
}

int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* attr) {
  return on_id("rdma_create_srq", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(attr, "attr"); !ok) return ok;
    ibv_srq_init_attr_ex extended{};
    extended.srq_context = attr->srq_context;
    extended.attr = attr->attr;
    extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    extended.srq_type = ours.qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    extended.pd = pd;
    auto created = create_srq(ours, extended);
    if (created) attr->attr = extended.attr;
    return created;
  });
}

int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* attr) {
  return on_id("rdma_create_srq_ex", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(attr, "attr"); !ok) return ok;
    return create_srq(ours, *attr);
  });
}

void rdma_destroy_srq(rdma_cm_id* id) {
  on_any_id("rdma_destroy_srq", id, [](CmId& ours) {
    destroy_srq(ours);
    return Result<void>{};
  });
}

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* qp_attr, int* qp_attr_mask) {
  return on_id("rdma_init_qp_attr", id, [&](CmId& ours) -> Result<void> {
    if (auto ok = check_pointer(qp_attr, "qp_attr"); !ok) return ok;
    if (auto ok = check_pointer(qp_attr_mask, "qp_attr_mask"); !ok) return ok;
    const auto mask = init_qp_attr(ours, *qp_attr);
    if (!mask) return mask.error();
    *qp_attr_mask = *mask;
    return {};
  });
}

// Devices.

ibv_context** rdma_get_devices(int* num_devices) {
  if (num_devices != nullptr) *num_devices = 0;
  return to_pointer("rdma_get_devices", [&]() -> Result<ibv_context**> {
    const auto agent = Agent::instance();
    if (!agent) return agent.error();
    Turn turn(**agent);
    const auto devices = (*agent)->devices.all();
    if (!devices) return devices.error();
    const std::size_t count = (*devices)->size();
    auto** list = static_cast<ibv_context**>(std::calloc(count + 1, sizeof(ibv_context*)));
    if (list == nullptr) return error(ENOMEM, "out of memory");
    for (std::size_t i = 0; i < count; ++i) list[i] = (**devices)[i]->verbs;
    if (num_devices != nullptr) *num_devices = static_cast<int>(count);
    return list;
  });
}

void rdma_free_devices(ibv_context** list) {
  std::free(list);
}

}  // extern "C"
