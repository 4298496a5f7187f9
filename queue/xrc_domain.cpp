// SPDX-License-Identifier: MIT
#include "queue/xrc_domain.h"

namespace nicless::queue {

bool XrcDomain::add(Srqn srqn, const Member& member) {
  MutexLock lock(mutex_);
  return members_.emplace(srqn, member).second;
}

void XrcDomain::remove(Srqn srqn) {
  MutexLock lock(mutex_);
  members_.erase(srqn);
}

std::optional<XrcDomain::Member> XrcDomain::find(Srqn srqn) const {
  MutexLock lock(mutex_);
  const auto found = members_.find(srqn);
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

}  // namespace nicless::queue
