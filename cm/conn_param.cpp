// SPDX-License-Identifier: MIT
#include "cm/conn_param.h"

#include <cerrno>
#include <string>

namespace nicless::cm {

bool is_datagram(const CmId& id) {
  return id.qp_type == IBV_QPT_UD;
}

std::span<const std::byte> private_data_of(const rdma_conn_param* param) {
  if (param == nullptr || param->private_data == nullptr) return {};
  return {static_cast<const std::byte*>(param->private_data), param->private_data_len};
}

std::uint32_t qp_number(const CmId& id, const rdma_conn_param* param) {
  if (id.qp != nullptr) return id.qp->qp_num;
  return param == nullptr ? 0 : param->qp_num & 0xffffff;
}

bool uses_srq(const CmId& id, const rdma_conn_param* param) {
  if (id.qp != nullptr) return id.qp->srq != nullptr;
  return param != nullptr && param->srq != 0;
}

Result<void> check_length(std::size_t bytes, std::size_t bytes_max) {
  if (bytes <= bytes_max) return {};
  return queue::error(
      EINVAL, std::to_string(bytes) + " bytes of private data; " + std::to_string(bytes_max) + " fit into the message");
}

}  // namespace nicless::cm
