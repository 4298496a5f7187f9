// SPDX-License-Identifier: MIT
#include "wire/rc/window.h"

namespace nicless::wire {

void Window::on_acknowledged(std::uint64_t packets) {
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(packets * mtu_bytes_, kMaxBytes));
  if (bytes_ < threshold_bytes_) {
    bytes_ = std::min(bytes_ + bytes, threshold_bytes_);
    return;
  }
  credit_bytes_ += bytes;
  if (credit_bytes_ < bytes_) return;
  credit_bytes_ = 0;
  bytes_ = std::min(bytes_ + mtu_bytes_, kMaxBytes);
}

void Window::on_loss(std::uint64_t acked_psn, std::uint64_t sent_psn) {
  if (acked_psn >= recovery_end_psn_) {
    recovery_end_psn_ = sent_psn;
    threshold_bytes_ = std::max(bytes_ / 2, kMinPackets * mtu_bytes_);
  }
  bytes_ = kMinPackets * mtu_bytes_;
  credit_bytes_ = 0;
}

void Window::on_timeout() {
  threshold_bytes_ = std::max(bytes_ / 2, kMinPackets * mtu_bytes_);
  bytes_ = kMinPackets * mtu_bytes_;
  credit_bytes_ = 0;
}

}  // namespace nicless::wire
