// SPDX-License-Identifier: MIT
// Hears of network interfaces that come, go or change: a netlink socket that becomes readable. What it says is thrown
// away, as who hears it looks at the interfaces anew. Thread-compatible.
#pragma once

#include <memory>

#include "queue/result.h"

namespace nicless::wire {

class LinkWatch {
 public:
  // The system's errno where there is no netlink or no descriptor.
  static queue::Result<std::unique_ptr<LinkWatch>> open();
  ~LinkWatch();
  LinkWatch(const LinkWatch&) = delete;
  LinkWatch& operator=(const LinkWatch&) = delete;

  int fd() const { return fd_; }
  void drain();

 private:
  explicit LinkWatch(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace nicless::wire
