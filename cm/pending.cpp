// SPDX-License-Identifier: MIT
// The calls that are not there yet, weak: the real ones take their place by being defined. Each refuses with ENOSYS.
#include <cerrno>
#include <type_traits>

namespace {

template <typename R>
R refuse() {
  errno = ENOSYS;
  if constexpr (std::is_pointer_v<R>) {
    return nullptr;
  } else {
    return -1;
  }
}

}  // namespace

#define PENDING(type, name)                      \
  extern "C" __attribute__((weak)) type name() { \
    return refuse<type>();                       \
  }

PENDING(int, rdma_accept)
PENDING(int, rdma_ack_cm_event)
PENDING(int, rdma_bind_addr)
PENDING(int, rdma_connect)
PENDING(int, rdma_create_ep)
PENDING(void*, rdma_create_event_channel)
PENDING(int, rdma_create_id)
PENDING(int, rdma_create_qp)
PENDING(int, rdma_create_qp_ex)
PENDING(int, rdma_create_srq)
PENDING(int, rdma_create_srq_ex)
PENDING(int, rdma_destroy_ep)
PENDING(int, rdma_destroy_event_channel)
PENDING(int, rdma_destroy_id)
PENDING(int, rdma_destroy_qp)
PENDING(int, rdma_destroy_srq)
PENDING(int, rdma_disconnect)
PENDING(int, rdma_establish)
PENDING(void*, rdma_event_str)
PENDING(int, rdma_free_devices)
PENDING(int, rdma_freeaddrinfo)
PENDING(int, rdma_get_cm_event)
PENDING(void*, rdma_get_devices)
PENDING(int, rdma_get_dst_port)
PENDING(int, rdma_get_remote_ece)
PENDING(int, rdma_get_request)
PENDING(int, rdma_get_src_port)
PENDING(int, rdma_getaddrinfo)
PENDING(int, rdma_init_qp_attr)
PENDING(int, rdma_join_multicast)
PENDING(int, rdma_join_multicast_ex)
PENDING(int, rdma_leave_multicast)
PENDING(int, rdma_listen)
PENDING(int, rdma_migrate_id)
PENDING(int, rdma_notify)
PENDING(int, rdma_query_addrinfo)
PENDING(int, rdma_reject)
PENDING(int, rdma_reject_ece)
PENDING(int, rdma_resolve_addr)
PENDING(int, rdma_resolve_addrinfo)
PENDING(int, rdma_resolve_route)
PENDING(int, rdma_set_local_ece)
PENDING(int, rdma_set_option)
PENDING(int, rdma_write_cm_event)
