// SPDX-License-Identifier: MIT
#include "provider/xrc_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "provider/qp.h"
#include "provider/srq.h"

namespace nicless::provider {

XrcGroup::~XrcGroup() {
  if (pinned_fd_ >= 0) ::close(pinned_fd_);
}

void XrcGroup::add(Srq& srq) {
  queue::MutexLock lock(mutex_);
  Cq& cq = *srq.cq.get();
  queue::ReceiveSource* const receives = srq.denied_receives ? srq.denied_receives.get() : &srq.queue;
  while (!domain_.add(srq.srqn, {receives, &cq.queue, &srq.context->regions, srq.pd->id})) {
    srq.srqn = srq.context->runtime.next_srqn();
  }
  cqs_.push_back(&cq);
  for (Qp* const target : targets_) cq.attach(target->seat.port);
}

void XrcGroup::remove(Srq& srq) {
  queue::MutexLock lock(mutex_);
  Cq& cq = *srq.cq.get();
  domain_.remove(srq.srqn);
  cqs_.erase(std::find(cqs_.begin(), cqs_.end(), &cq));
  for (Qp* const target : targets_) cq.detach(target->seat.port);
}

void XrcGroup::add(Qp& target) {
  queue::MutexLock lock(mutex_);
  targets_.push_back(&target);
  for (Cq* const cq : cqs_) cq->attach(target.seat.port);
}

Qp* XrcGroup::open(std::uint32_t qpn) {
  queue::MutexLock lock(mutex_);
  const auto found = std::find_if(targets_.begin(), targets_.end(),
                                  [&](const Qp* target) { return target->verbs.qp_base.qp_num == qpn; });
  if (found == targets_.end()) return nullptr;
  ++(*found)->handles;
  return *found;
}

bool XrcGroup::close(Qp& target) {
  queue::MutexLock lock(mutex_);
  if (--target.handles != 0) return false;
  std::erase(targets_, &target);
  for (Cq* const cq : cqs_) cq->detach(target.seat.port);
  return true;
}

Result<std::shared_ptr<XrcGroup>> XrcDomains::open(int device, int fd, int oflags) {
  if (fd == -1) return std::make_shared<XrcGroup>();
  struct stat file {};
  if (fstat(fd, &file) != 0) {
    return queue::error(errno, "fd " + std::to_string(fd) + ": " + std::strerror(errno) +
                                   "; give an open file, or -1 for a domain of its own");
  }
  queue::MutexLock lock(mutex_);
  std::weak_ptr<XrcGroup>& place = groups_[{device, file.st_dev, file.st_ino}];
  if (auto group = place.lock()) {
    if ((oflags & O_EXCL) == 0) return group;
    return queue::error(EINVAL, "O_EXCL is given, and the file has an XRC domain already");
  }
  if ((oflags & O_CREAT) == 0) {
    return queue::error(EAGAIN, "the file has no XRC domain in this process, and O_CREAT is not given to make one");
  }
  auto group = std::make_shared<XrcGroup>();
  group->pinned_fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (group->pinned_fd_ < 0) return queue::error(errno, std::string("dup: ") + std::strerror(errno));
  place = group;
  return group;
}

}  // namespace nicless::provider
