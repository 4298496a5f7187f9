// SPDX-License-Identifier: MIT
// Protection domains and memory regions behind their handles.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>

#include "provider/context.h"

namespace nicless::provider {

struct Pd {
  explicit Pd(Context& the_context)
      : verbs{public_context(the_context), 0}, context(the_context), id(the_context.next_pd.fetch_add(1)) {
    verbs.handle = id.value();
  }
  ibv_pd verbs;
  const ContextHold context;
  const queue::PdId id;
  std::atomic<std::uint32_t> children{0};  // MRs, SRQs, QPs, AHs
};

inline Pd& pd_of(ibv_pd* pd) {
  return *reinterpret_cast<Pd*>(pd);
}

// What belongs to a protection domain counts there.
class PdChild {
 public:
  explicit PdChild(Pd& pd) : pd_(pd) { pd_.children.fetch_add(1); }
  ~PdChild() { pd_.children.fetch_sub(1); }
  PdChild(const PdChild&) = delete;
  PdChild& operator=(const PdChild&) = delete;
  Pd& operator*() const { return pd_; }
  Pd* operator->() const { return &pd_; }

 private:
  Pd& pd_;
};

}  // namespace nicless::provider
