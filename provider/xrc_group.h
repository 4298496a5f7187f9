// SPDX-License-Identifier: MIT
// What all handles of one XRC domain share: ibv_open_xrcd(3) with the same inode gives the same domain, within this
// process. Another process that opens the inode has a domain of its own (docs/adr/0010). Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/xrc_domain.h"

namespace nicless::provider {

struct Cq;
struct Qp;
struct Srq;

using queue::Result;

class XrcGroup {
 public:
  XrcGroup() = default;
  ~XrcGroup();
  XrcGroup(const XrcGroup&) = delete;
  XrcGroup& operator=(const XrcGroup&) = delete;

  queue::XrcDomain& domain() { return domain_; }

  // What arrives at any target may complete in the CQ of any of the SRQs: polling it drives the targets' ports. The SRQ
  // gets a number that no other of the domain has.
  void add(Srq& srq) EXCLUDES(mutex_);
  void remove(Srq& srq) EXCLUDES(mutex_);  // packets that name it are refused from now on
  void add(Qp& target) EXCLUDES(mutex_);

  // The target with this number, which has one handle more now; null if there is none.
  Qp* open(std::uint32_t qpn) EXCLUDES(mutex_);
  // A handle of the target is gone. True if it was the last, and the caller has to destroy the target.
  bool close(Qp& target) EXCLUDES(mutex_);

 private:
  friend class XrcDomains;
  int pinned_fd_ = -1;  // keeps the inode from being reused for another file
  queue::XrcDomain domain_;
  queue::Mutex mutex_;                       // before Cq::driving
  std::vector<Cq*> cqs_ GUARDED_BY(mutex_);  // one for each SRQ
  std::vector<Qp*> targets_ GUARDED_BY(mutex_);
};

// The domains of this process by device and inode.
class XrcDomains {
 public:
  // fd: -1 for a domain of its own. EBADF: no such descriptor; EAGAIN: no domain yet and no O_CREAT; EINVAL: there is
  // one and O_EXCL.
  Result<std::shared_ptr<XrcGroup>> open(int device, int fd, int oflags) EXCLUDES(mutex_);

 private:
  using Key = std::tuple<int, dev_t, ino_t>;
  queue::Mutex mutex_;
  std::map<Key, std::weak_ptr<XrcGroup>> groups_ GUARDED_BY(mutex_);
};

}  // namespace nicless::provider
