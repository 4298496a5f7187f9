// SPDX-License-Identifier: MIT
// The exported functions that we lack. Versions are given by libibverbs.map.
#include "provider/refusal.h"
#include "provider/verbs65.h"

using nicless::provider::refusal;

extern "C" {

ibv_context* ibv_import_device(int) {
  return refusal<ibv_context*>("ibv_import_device");
}
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) {
  return refusal<ibv_pd*>("ibv_import_pd");
}
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) {
  return refusal<ibv_mr*>("ibv_import_mr");
}
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) {
  return refusal<ibv_dm*>("ibv_import_dm");
}
void ibv_unimport_dm(ibv_dm*) {}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return refusal<ibv_mr*>("ibv_reg_dmabuf_mr");
}
ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*) {
  return refusal<ibv_dmah*>("ibv_alloc_dmah");
}
int ibv_dealloc_dmah(ibv_dmah*) {
  return refusal<int>("ibv_dealloc_dmah");
}
// Descriptors: -1 with errno set.
int ibv_dm_export_dmabuf_fd(ibv_dm*) {
  errno = refusal<int>("ibv_dm_export_dmabuf_fd");
  return -1;
}
int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  errno = refusal<int>("ibv_export_buf_dmabuf_fd");
  return -1;
}

int ibv_set_ece(ibv_qp*, ibv_ece*) {
  return refusal<int>("ibv_set_ece");
}
int ibv_query_ece(ibv_qp*, ibv_ece*) {
  return refusal<int>("ibv_query_ece");
}
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t[ETHERNET_LL_SIZE], uint16_t*) {
  return refusal<int>("ibv_resolve_eth_l2_from_gid");
}

int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, size_t) {
  return refusal<int>("ibv_query_comp_cntr_caps");
}
ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, ibv_comp_cntr_init_attr*) {
  return refusal<ibv_comp_cntr*>("ibv_create_comp_cntr");
}
int ibv_destroy_comp_cntr(ibv_comp_cntr*) {
  return refusal<int>("ibv_destroy_comp_cntr");
}
int ibv_set_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_set_comp_cntr");
}
int ibv_set_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_set_err_comp_cntr");
}
int ibv_inc_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_inc_comp_cntr");
}
int ibv_inc_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_inc_err_comp_cntr");
}
int ibv_read_comp_cntr(ibv_comp_cntr*, uint64_t*) {
  return refusal<int>("ibv_read_comp_cntr");
}
int ibv_read_err_comp_cntr(ibv_comp_cntr*, uint64_t*) {
  return refusal<int>("ibv_read_err_comp_cntr");
}
int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*, ibv_qp_attach_comp_cntr_attr*) {
  return refusal<int>("ibv_qp_attach_comp_cntr");
}

// Conversions of the kernel's structs, for libraries that talk to the kernel: there is nothing to convert here.
void ibv_copy_ah_attr_from_kern(ibv_ah_attr*, void*) {
  refusal<void>("ibv_copy_ah_attr_from_kern");
}
void ibv_copy_path_rec_from_kern(void*, void*) {
  refusal<void>("ibv_copy_path_rec_from_kern");
}
void ibv_copy_path_rec_to_kern(void*, void*) {
  refusal<void>("ibv_copy_path_rec_to_kern");
}
void ibv_copy_qp_attr_from_kern(ibv_qp_attr*, void*) {
  refusal<void>("ibv_copy_qp_attr_from_kern");
}

}  // extern "C"
