// SPDX-License-Identifier: MIT
// The exported functions that we lack. Versions are given by libibverbs.map.
#include "provider/refusal.h"
#include "provider/verbs65.h"

using nicless::provider::refusal;
using nicless::provider::refused_descriptor;

namespace {

constexpr const char* kImport = "what belongs to one process is not shared with another: each opens the device itself";
constexpr const char* kDmaBuf = "memory of this process is no DMA-buf";
constexpr const char* kDmaHandles = "no device reads our memory, so there is nothing to say of how it should";
constexpr const char* kEce = "there are no enhancements of a vendor's to agree on";
constexpr const char* kCounters = "completions are counted by no hardware here: poll the CQ";

}  // namespace

extern "C" {

ibv_context* ibv_import_device(int) {
  return refusal<ibv_context*>("ibv_import_device", kImport);
}
ibv_pd* ibv_import_pd(ibv_context*, uint32_t) {
  return refusal<ibv_pd*>("ibv_import_pd", kImport);
}
void ibv_unimport_pd(ibv_pd*) {}
ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) {
  return refusal<ibv_mr*>("ibv_import_mr", kImport);
}
void ibv_unimport_mr(ibv_mr*) {}
ibv_dm* ibv_import_dm(ibv_context*, uint32_t) {
  return refusal<ibv_dm*>("ibv_import_dm", kImport);
}
void ibv_unimport_dm(ibv_dm*) {}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return refusal<ibv_mr*>("ibv_reg_dmabuf_mr", kDmaBuf);
}
ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*) {
  return refusal<ibv_dmah*>("ibv_alloc_dmah", kDmaHandles);
}
int ibv_dealloc_dmah(ibv_dmah*) {
  return refusal<int>("ibv_dealloc_dmah", kDmaHandles);
}
// Descriptors: -1 with errno set.
int ibv_dm_export_dmabuf_fd(ibv_dm*) {
  return refused_descriptor("ibv_dm_export_dmabuf_fd", kDmaBuf);
}
int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  return refused_descriptor("ibv_export_buf_dmabuf_fd", kDmaBuf);
}

int ibv_set_ece(ibv_qp*, ibv_ece*) {
  return refusal<int>("ibv_set_ece", kEce);
}
int ibv_query_ece(ibv_qp*, ibv_ece*) {
  return refusal<int>("ibv_query_ece", kEce);
}
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t[ETHERNET_LL_SIZE], uint16_t*) {
  return refusal<int>("ibv_resolve_eth_l2_from_gid");
}

int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, size_t) {
  return refusal<int>("ibv_query_comp_cntr_caps", kCounters);
}
ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, ibv_comp_cntr_init_attr*) {
  return refusal<ibv_comp_cntr*>("ibv_create_comp_cntr", kCounters);
}
int ibv_destroy_comp_cntr(ibv_comp_cntr*) {
  return refusal<int>("ibv_destroy_comp_cntr", kCounters);
}
int ibv_set_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_set_comp_cntr", kCounters);
}
int ibv_set_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_set_err_comp_cntr", kCounters);
}
int ibv_inc_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_inc_comp_cntr", kCounters);
}
int ibv_inc_err_comp_cntr(ibv_comp_cntr*, uint64_t) {
  return refusal<int>("ibv_inc_err_comp_cntr", kCounters);
}
int ibv_read_comp_cntr(ibv_comp_cntr*, uint64_t*) {
  return refusal<int>("ibv_read_comp_cntr", kCounters);
}
int ibv_read_err_comp_cntr(ibv_comp_cntr*, uint64_t*) {
  return refusal<int>("ibv_read_err_comp_cntr", kCounters);
}
int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*, ibv_qp_attach_comp_cntr_attr*) {
  return refusal<int>("ibv_qp_attach_comp_cntr", kCounters);
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
