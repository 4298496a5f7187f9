// SPDX-License-Identifier: MIT
// The scatter-gather lists of work requests, from verbs' form to ours.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>

#include "queue/result.h"
#include "queue/work_request.h"

namespace nicless::provider {

class ScatterList {
 public:
  // most: entries that the queue takes, at most kSgeMax. More than that is `errno_of_too_many` (mlx5 says ENOMEM to
  // sends and EINVAL to receives), a negative number EINVAL; then nothing of the list has been read, as a caller who
  // counts wrongly may have no more of it.
  static queue::Result<ScatterList> from(const ibv_sge* list, int count, std::uint32_t most, int errno_of_too_many) {
    if (count < 0 || count > static_cast<int>(most)) {
      return queue::error(count < 0 ? EINVAL : errno_of_too_many, "num_sge is " + std::to_string(count) +
                                                                      ", a list of this queue has at most " +
                                                                      std::to_string(most) + " entries");
    }
    ScatterList made;
    made.count_ = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < made.count_; ++i) {
      made.sges_[i] = {.addr = list[i].addr, .length = list[i].length, .lkey = queue::LKey(list[i].lkey)};
    }
    return made;
  }

  std::span<const queue::Sge> sges() const { return std::span(sges_).first(count_); }

 private:
  std::size_t count_ = 0;
  std::array<queue::Sge, queue::kSgeMax> sges_;
};

// Queue: a receive queue or a shared one.
template <typename Queue>
queue::Result<void> post_list(Queue& queue, const ibv_recv_wr& wr) {
  const auto list = ScatterList::from(wr.sg_list, wr.num_sge, queue.sge_max(), EINVAL);
  if (!list) return list.error();
  return queue.post(wr.wr_id, list->sges());
}

}  // namespace nicless::provider
