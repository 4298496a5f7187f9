// SPDX-License-Identifier: MIT
// An XRC domain: the shared receive queues that its XRC targets deliver to, by the number that a packet names. A target
// has no queues and no protection domain of its own; it takes those of the SRQ. See ibv_open_xrcd(3); IBTA A14.
// Thread-safe; a leaf lock.
//
// What find() returns stays good while the caller holds the port's lock: ibv_destroy_srq removes the SRQ here and then
// passes through every port's lock before it goes on.
#pragma once

#include <optional>
#include <unordered_map>

#include "queue/completion_queue.h"
#include "queue/memory_region.h"
#include "queue/mutex.h"
#include "queue/receive_queue.h"
#include "queue/types.h"

namespace nicless::queue {

class XrcDomain {
 public:
  struct Member {
    ReceiveSource* receives = nullptr;
    CompletionQueue* cq = nullptr;  // where its receives complete
    MrTable* regions = nullptr;     // of the device handle that the SRQ was made with
    PdId pd{};                      // the SRQ's: also for what a request reads and writes
    friend bool operator==(const Member&, const Member&) = default;
  };

  bool add(Srqn srqn, const Member& member) EXCLUDES(mutex_);  // false: the number is taken
  void remove(Srqn srqn) EXCLUDES(mutex_);
  std::optional<Member> find(Srqn srqn) const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::unordered_map<Srqn, Member> members_ GUARDED_BY(mutex_);
};

}  // namespace nicless::queue
