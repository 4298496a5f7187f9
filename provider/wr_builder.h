// SPDX-License-Identifier: MIT
// The ibv_wr_* interface (ibv_wr_post(3)): work requests built call by call between ibv_wr_start and ibv_wr_complete,
// and posted all together or not at all. One thread at a time builds on a queue pair; another waits in ibv_wr_start.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "provider/qp.h"
#include "queue/mutex.h"
#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::provider {

class WrBuilder {
 public:
  // send_ops_flags: the operations that the queue pair was created with; each other one is refused.
  explicit WrBuilder(std::uint64_t send_ops_flags) : send_ops_flags_(send_ops_flags) {}
  // Once more on the thread that builds already: that batch is refused, instead of a wait for itself without end.
  void start() ACQUIRE(building_) NO_THREAD_SAFETY_ANALYSIS;
  // The next work request, with the wr_id and flags that stand in the ibv_qp_ex.
  void begin(const ibv_qp_ex& qp, queue::SendOpcode opcode) REQUIRES(building_);
  // The one that was begun last, to be filled in.
  queue::Wqe& current() REQUIRES(building_);
  void add_list(std::span<const ibv_sge> list) REQUIRES(building_);
  void add_inline(const void* data, std::size_t length) REQUIRES(building_);
  void refuse(queue::Error error) REQUIRES(building_);  // the first refusal is the one completed with
  // EINVAL where nothing was started.
  queue::Result<void> complete(Qp& qp) RELEASE(building_) NO_THREAD_SAFETY_ANALYSIS;
  void abort() RELEASE(building_) NO_THREAD_SAFETY_ANALYSIS;

 private:
  // Of one work request: where its list and inline data begin in the common stores.
  struct Parts {
    std::size_t sges = 0;
    std::size_t inline_data = 0;
  };
  void attach_parts() REQUIRES(building_);

  const std::uint64_t send_ops_flags_;
  queue::Mutex building_;
  std::atomic<std::thread::id> builder_{};  // whoever has building_; no thread: nobody
  std::vector<queue::Wqe> requests_ GUARDED_BY(building_);
  std::vector<Parts> parts_ GUARDED_BY(building_);
  std::vector<queue::Sge> sges_ GUARDED_BY(building_);
  std::vector<std::byte> inline_data_ GUARDED_BY(building_);
  queue::Error refusal_ GUARDED_BY(building_);
};

// EOPNOTSUPP: flags of enum ibv_qp_create_send_ops_flags that we do not have; EINVAL: unknown ones.
queue::Result<void> check_send_ops(std::uint64_t send_ops_flags);
// Gives the queue pair a builder and fills the slots of its ibv_qp_ex.
void install_builder(Qp& qp, std::uint64_t send_ops_flags);

}  // namespace nicless::provider
