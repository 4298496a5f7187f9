// SPDX-License-Identifier: MIT
#include "wire/rc/window.h"

namespace nicless::wire {

void Window::on_acknowledged(std::uint64_t packets, std::uint32_t most_bytes) {
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(packets * mtu_bytes_, most_bytes));
  const std::uint32_t limit = std::min(threshold_bytes_, most_bytes);
  if (bytes_ < limit) {
    bytes_ = std::min(bytes_ + bytes, limit);
    return;
  }
  credit_bytes_ += bytes;
  if (credit_bytes_ < bytes_) return;
  credit_bytes_ = 0;
  bytes_ = std::min(bytes_ + mtu_bytes_, most_bytes);
}

void Window::on_loss(std::uint64_t acked_psn, std::uint64_t sent_psn, Loss loss) {
  const bool is_crowd = loss == Loss::Crowd;
  const std::uint32_t least_bytes = (is_crowd ? kMinPackets : kStrayMinPackets) * mtu_bytes_;
  if (acked_psn >= recovery_end_psn_) {
    recovery_end_psn_ = sent_psn;
    threshold_bytes_ = std::max(is_crowd ? bytes_ / 2 : bytes_, least_bytes);
  }
  bytes_ = is_crowd ? least_bytes : std::max(threshold_bytes_ / 2, least_bytes);
  credit_bytes_ = 0;
}

void Window::on_timeout() {
  threshold_bytes_ = std::max(bytes_ / 2, kMinPackets * mtu_bytes_);
  bytes_ = kMinPackets * mtu_bytes_;
  credit_bytes_ = 0;
}

}  // namespace nicless::wire
