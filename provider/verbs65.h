/* SPDX-License-Identifier: MIT */
/* What programs built with rdma-core newer than 44 may ask of us and the headers of 44 do not know: the functions of
 * the nodes IBVERBS_1.15 to 1.18, and the six slots that stand before the older ones in struct verbs_context. Written
 * from the public manual pages and the layouts of release 65; only what is needed. See docs/ABI.md. */
#ifndef NICLESS_PROVIDER_VERBS65_H
#define NICLESS_PROVIDER_VERBS65_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

enum nicless_reg_mr_mask {
  NICLESS_REG_MR_IOVA = 1 << 0,
  NICLESS_REG_MR_ADDR = 1 << 1,
  NICLESS_REG_MR_FD = 1 << 2,
  NICLESS_REG_MR_FD_OFFSET = 1 << 3,
  NICLESS_REG_MR_DMAH = 1 << 4,
  NICLESS_REG_MR_BUF = 1 << 5
};

/* ibv_reg_mr_ex(3) of release 65: 72 bytes; before 64 it ended with dmah. */
struct ibv_mr_init_attr {
  size_t length;
  int access;
  uint64_t comp_mask; /* enum nicless_reg_mr_mask */
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  struct ibv_dmah* dmah;
  struct ibv_buf* buf; /* only there if the mask has NICLESS_REG_MR_BUF */
};

/* IBVERBS_1.15 */
struct ibv_dmah* ibv_alloc_dmah(struct ibv_context* context, struct ibv_dmah_init_attr* attr);
int ibv_dealloc_dmah(struct ibv_dmah* dmah);
struct ibv_mr* ibv_reg_mr_ex(struct ibv_pd* pd, struct ibv_mr_init_attr* attr);
/* IBVERBS_1.16 */
int ibv_dm_export_dmabuf_fd(struct ibv_dm* dm);
int ibv_query_port_speed(struct ibv_context* context, uint32_t port_num, uint64_t* port_speed); /* 100 Mb/s */
/* IBVERBS_1.17 */
void* ibv_alloc_buf(struct ibv_pd* pd, size_t size, struct ibv_buf** buf);
void ibv_free_buf(struct ibv_buf* buf);
struct ibv_mr* ibv_reg_buf_mr(struct ibv_pd* pd, struct ibv_buf* buf, void* addr, size_t length, int access);
/* IBVERBS_1.18 */
int _ibv_query_comp_cntr_caps(struct ibv_context* context, struct ibv_comp_cntr_caps* caps, size_t caps_size);
struct ibv_comp_cntr* ibv_create_comp_cntr(struct ibv_context* context, struct ibv_comp_cntr_init_attr* attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr* counter);
int ibv_set_comp_cntr(struct ibv_comp_cntr* counter, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr* counter, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr* counter, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr* counter, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr* counter, uint64_t* value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr* counter, uint64_t* value);
int ibv_qp_attach_comp_cntr(struct ibv_qp* qp, struct ibv_comp_cntr* counter,
                            struct ibv_qp_attach_comp_cntr_attr* attr);
int ibv_export_buf_dmabuf_fd(struct ibv_buf* buf);

/* struct verbs_context of release 65: new slots stand in front, so that those of older releases keep their distance
 * from the struct ibv_context at the end, which is what programs hold. */
struct nicless_verbs_context {
  void (*free_buf)(struct ibv_buf* buf);
  void* (*alloc_buf)(struct ibv_pd* pd, size_t size, struct ibv_buf** buf);
  int (*dm_export_dmabuf_fd)(struct ibv_dm* dm);
  struct ibv_mr* (*reg_mr_ex)(struct ibv_pd* pd, struct ibv_mr_init_attr* attr);
  int (*dealloc_dmah)(struct ibv_dmah* dmah);
  struct ibv_dmah* (*alloc_dmah)(struct ibv_context* context, struct ibv_dmah_init_attr* attr);
  struct verbs_context since_44; /* its sz holds the size of this whole struct */
};

/* struct ibv_port_attr of release 49 and later: 56 bytes. */
struct nicless_port_attr {
  struct ibv_port_attr since_44;
  uint32_t active_speed_ex; /* for speeds that active_speed has no bit for: 0 */
};

#ifdef __cplusplus
}
#endif
#endif
