// SPDX-License-Identifier: MIT
// The door that programs link to: every public ibv_* function that does something. Each line converts and does nothing
// else; versions are given by libibverbs.map. What we lack stands in unsupported.cpp.
#include <infiniband/verbs.h>

#include <cstring>

#include "provider/buffers.h"
#include "provider/device.h"
#include "provider/errno_shapes.h"
#include "provider/objects.h"
#include "provider/private.h"
#include "provider/sysfs.h"
#include "provider/verbs65.h"

// verbs.h hides these behind macros that choose by the caller's age.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

using namespace nicless::provider;  // NOLINT(google-build-using-namespace): one-liners that name little else

extern "C" {

// Devices: ibv_get_device_list(3) and what a device says about itself.

ibv_device** ibv_get_device_list(int* num_devices) {
  return null_and_errno("ibv_get_device_list", [&] { return device_list(num_devices); });
}
void ibv_free_device_list(ibv_device** list) {
  free_device_list(list);
}
const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}
int ibv_get_device_index(ibv_device* device) {
  return device_of(device).index;
}
__be64 ibv_get_device_guid(ibv_device* device) {
  return htobe64(device_of(device).guid);
}
ibv_context* ibv_open_device(ibv_device* device) {
  return null_and_errno("ibv_open_device", [&] { return open_device(device); });
}
int ibv_close_device(ibv_context* context) {
  return minus_one_and_errno("ibv_close_device", [&] { return close_device(context); });
}
int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  query_device(device_of(context), attr);
  return 0;
}
// Binaries older than release 21 come here, and programs that resolve the name by dlvsym: 48 bytes and no more.
int ibv_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attr) {
  constexpr std::size_t kOldestSize = 48;
  return errno_itself("ibv_query_port", [&] {
    return query_port(device_of(context), port_num, reinterpret_cast<ibv_port_attr*>(attr), kOldestSize);
  });
}
int ibv_query_port_speed(ibv_context*, uint32_t port_num, uint64_t* speed) {
  return errno_itself("ibv_query_port_speed", [&]() -> Result<void> {
    const auto found = port_speed(port_num);
    if (!found) return found.error();
    *speed = *found;
    return {};
  });
}
int ibv_query_gid(ibv_context* context, uint8_t port_num, int index, ibv_gid* gid) {
  return minus_one_and_errno("ibv_query_gid", [&] { return query_gid(device_of(context), port_num, index, gid); });
}
int _ibv_query_gid_ex(ibv_context* context, uint32_t port_num, uint32_t gid_index, ibv_gid_entry* entry, uint32_t flags,
                      size_t entry_size) {
  return errno_itself("ibv_query_gid_ex",
                      [&] { return query_gid_ex(device_of(context), port_num, gid_index, entry, flags, entry_size); });
}
ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max_entries, uint32_t flags,
                             size_t entry_size) {
  return count_or_negative("ibv_query_gid_table", [&] {
    return query_gid_table(device_of(context), entries, max_entries, flags, entry_size);
  });
}
int ibv_query_pkey(ibv_context*, uint8_t port_num, int index, __be16* pkey) {
  return minus_one_and_errno("ibv_query_pkey", [&] { return query_pkey(port_num, index, pkey); });
}
int ibv_get_pkey_index(ibv_context*, uint8_t port_num, __be16 pkey) {
  return number_or_minus_one("ibv_get_pkey_index", [&] { return pkey_index(port_num, pkey); });
}
const char* ibv_get_sysfs_path(void) {
  const KeepErrno keep;
  return sysfs_path();
}
int ibv_read_sysfs_file(const char* folder, const char* file, char* buffer, size_t size) {
  // A file that is not there is what programs ask to learn: no failure, nothing to say.
  const auto length = guard([&] { return read_sysfs_file(folder, file, buffer, size); });
  if (length) return *length;
  errno = length.error().errno_value;
  return -1;
}

// Fork: nothing of ours is mapped for a device, so a child's copy disturbs nothing. ibv_fork_init(3).

int ibv_fork_init(void) {
  return 0;
}
ibv_fork_status ibv_is_fork_initialized(void) {
  return IBV_FORK_UNNEEDED;
}
int ibv_dontfork_range(void*, size_t) {
  return 0;
}
int ibv_dofork_range(void*, size_t) {
  return 0;
}

// Protection domains and memory: ibv_alloc_pd(3), ibv_reg_mr(3), ibv_alloc_buf(3).

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return null_and_errno("ibv_alloc_pd", [&] { return alloc_pd(context); });
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return errno_itself("ibv_dealloc_pd", [&] { return dealloc_pd(pd); });
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, size_t length, int access) {
  return null_and_errno("ibv_reg_mr", [&] {
    return reg_mr(pd, addr, length, reinterpret_cast<std::uintptr_t>(addr), static_cast<unsigned>(access));
  });
}
ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, size_t length, uint64_t iova, int access) {
  return null_and_errno("ibv_reg_mr_iova",
                        [&] { return reg_mr(pd, addr, length, iova, static_cast<unsigned>(access)); });
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned access) {
  return null_and_errno("ibv_reg_mr", [&] { return reg_mr(pd, addr, length, iova, access); });
}
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  return null_and_errno("ibv_reg_mr_ex", [&] { return reg_mr_ex(pd, *attr); });
}
// The value says what became of the old region, errno why.
int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, size_t length, int access) {
  const auto input = guard([&] { return check_rereg_mr(mr, flags, addr, length, access); });
  const auto done =
      input ? guard([&] { return rereg_mr(mr, flags, pd, addr, length, static_cast<unsigned>(access)); }) : input;
  if (done) return 0;
  errno = report("ibv_rereg_mr", done.error());
  return input ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
}
int ibv_dereg_mr(ibv_mr* mr) {
  return errno_itself("ibv_dereg_mr", [&] { return dereg_mr(mr); });
}
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buf) {
  return null_and_errno("ibv_alloc_buf", [&] { return alloc_buf(pd, size, buf); });
}
void ibv_free_buf(ibv_buf* buf) {
  free_buf(buf);
}
ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, size_t length, int access) {
  return null_and_errno("ibv_reg_buf_mr",
                        [&] { return reg_buf_mr(pd, buf, addr, length, static_cast<unsigned>(access)); });
}

// Completion: ibv_create_comp_channel(3), ibv_create_cq(3), ibv_get_cq_event(3).

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return null_and_errno("ibv_create_comp_channel", [&] { return create_comp_channel(context); });
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return errno_itself("ibv_destroy_comp_channel", [&] { return destroy_comp_channel(channel); });
}
ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  return null_and_errno("ibv_create_cq", [&] { return create_cq(context, cqe, cq_context, channel, comp_vector); });
}
int ibv_resize_cq(ibv_cq* cq, int cqe) {
  return errno_itself("ibv_resize_cq", [&] { return resize_cq(cq, cqe); });
}
int ibv_destroy_cq(ibv_cq* cq) {
  return errno_itself("ibv_destroy_cq", [&] { return destroy_cq(cq); });
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return minus_one_and_errno_cancellable("ibv_get_cq_event", [&]() -> Result<void> {
    const auto from = wait_cq_event(channel);
    if (!from) return from.error();
    *cq = *from;
    *cq_context = (*from)->cq_context;
    return {};
  });
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned nevents) {
  ack_cq_events(cq, nevents);
}

// Shared receive queues: ibv_create_srq(3).

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  return null_and_errno("ibv_create_srq", [&] { return create_srq(pd, attr); });
}
int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask) {
  return errno_itself("ibv_modify_srq", [&] { return modify_srq(srq, attr, mask); });
}
int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attr) {
  return errno_itself("ibv_query_srq", [&] { return query_srq(srq, attr); });
}
int ibv_destroy_srq(ibv_srq* srq) {
  return errno_itself("ibv_destroy_srq", [&] { return destroy_srq(srq); });
}

// Queue pairs and address handles: ibv_create_qp(3), ibv_modify_qp(3), ibv_create_ah(3).

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return null_and_errno("ibv_create_qp", [&] { return create_qp(pd, attr); });
}
ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) {
  return null_and_errno("ibv_qp_to_qp_ex", [&] { return extended_qp(qp); });
}
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  return errno_itself(Call("ibv_modify_qp", qp), [&] { return modify_qp(qp, attr, mask); });
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init_attr) {
  return errno_itself(Call("ibv_query_qp", qp), [&] { return query_qp(qp, attr, mask, init_attr); });
}
int ibv_destroy_qp(ibv_qp* qp) {
  return errno_itself("ibv_destroy_qp", [&] { return destroy_qp(qp); });
}
// Messages that are longer than one packet are written by several datagrams, and any of them may come twice.
int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 0;
}
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return errno_itself("ibv_attach_mcast", [&] { return attach_mcast(qp, gid); });
}
int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return errno_itself("ibv_detach_mcast", [&] { return detach_mcast(qp, gid); });
}
ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return null_and_errno("ibv_create_ah", [&] { return create_ah(pd, attr); });
}
int ibv_init_ah_from_wc(ibv_context* context, uint8_t port_num, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attr) {
  return minus_one_and_errno("ibv_init_ah_from_wc", [&] { return init_ah_from_wc(context, port_num, wc, grh, attr); });
}
ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port_num) {
  return null_and_errno("ibv_create_ah_from_wc", [&] { return create_ah_from_wc(pd, wc, grh, port_num); });
}
int ibv_destroy_ah(ibv_ah* ah) {
  return errno_itself("ibv_destroy_ah", [&] { return destroy_ah(ah); });
}

// What libnicless_paths.so answers from.
const char* nicless_file_tree(void) {
  const KeepErrno keep;
  return file_tree();
}

// Asynchronous events: ibv_get_async_event(3).

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return minus_one_and_errno_cancellable("ibv_get_async_event", [&] { return wait_async_event(context, event); });
}
void ibv_ack_async_event(ibv_async_event* event) {
  ack_async_event(event);
}

}  // extern "C"
